//! Commands to start: a program and its arguments, passed unchanged, without a shell.
//!
//! A command is only a description. Any number of readers and writers can use it, and it may be changed or freed after
//! they were opened.

use std::ffi::{c_char, c_void};
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

use millstream::{CancelToken, Command, Error, ErrorKind, Result, Stdin, Stdout};

use crate::boundary::{User, call, chosen, duplicate_fd, free, given, invalid, items, out, path, string};
use crate::callback::{UserContext, counted, millstream_fill_callback, millstream_release_callback};
use crate::cancel::millstream_cancel_token;
use crate::enums::{millstream_stderr, millstream_stdin, millstream_stdout};
use crate::error::{millstream_code, millstream_error};
use crate::settings::Settings;

/// A command to start. It is freed by millstream_command_free().
pub struct millstream_command(pub(crate) Settings<Command>);

impl millstream_command {
    /// Returns the command to start.
    pub(crate) fn core(&self) -> Result<Command> {
        self.0.apply(Command::new::<[&str; 0]>([]))
    }
}

/// Changes a command.
fn set(
    command: Option<&mut millstream_command>,
    setting: impl Fn(Command) -> Command + Send + Sync + 'static,
) -> Result<()> {
    given(command, "command")?.0.set(setting);
    Ok(())
}

/// Creates a command from `argc` words: the program, which is searched for in PATH, and its arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_command_new(
    argv: *const *const c_char,
    argc: usize,
    command: Option<&mut MaybeUninit<Box<millstream_command>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let command = out(command, "command")?;
        let mut settings = Settings::new();
        // SAFETY: C lends an array for this call.
        for &word in unsafe { items(argv, argc, "argv")? } {
            // SAFETY: the array's elements are strings.
            let word = unsafe { string(word, "argv")? }.to_owned();
            settings.set(move |command: Command| command.arg(&word));
        }
        command.write(Box::new(millstream_command(settings)));
        Ok(())
    })
}

/// Adds an argument.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_command_add_arg(
    command: Option<&mut millstream_command>,
    argument: *const c_char,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let argument = unsafe { string(argument, "argument")? }.to_owned();
        set(command, move |command| command.arg(&argument))
    })
}

/// Sets an environment variable; a `value` of NULL removes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_command_set_env(
    command: Option<&mut millstream_command>,
    key: *const c_char,
    value: *const c_char,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let key = unsafe { string(key, "key")? }.to_owned();
        if value.is_null() {
            return set(command, move |command| command.env_remove(&key));
        }
        // SAFETY: as above.
        let value = unsafe { string(value, "value")? }.to_owned();
        set(command, move |command| command.env(&key, &value))
    })
}

/// Removes all environment variables set so far, including inherited ones.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_command_clear_env(
    command: Option<&mut millstream_command>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || set(command, Command::env_clear))
}

/// Sets the directory in which the command is started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_command_set_current_dir(
    command: Option<&mut millstream_command>,
    dir: *const c_char,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let dir = unsafe { path(dir, "dir")? }.to_owned();
        set(command, move |command| command.current_dir(&dir))
    })
}

/// Sets the source of its standard input: MILLSTREAM_STDIN_NULL by default. This is ignored for the command of a sink,
/// and for all but the first command of a pipeline, because the library provides their input.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_command_set_stdin(
    command: Option<&mut millstream_command>,
    from: MaybeUninit<millstream_stdin>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        chosen(from)?;
        // The value is created for each start, because it cannot be cloned.
        given(command, "command")?.0.try_set(move |command| Ok(command.stdin(chosen(from)?)));
        Ok(())
    })
}

/// Sets its standard input to a copy of these bytes, followed by the end of the input. The command does not have to read
/// all of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_command_set_stdin_bytes(
    command: Option<&mut millstream_command>,
    bytes: *const u8,
    len: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends an array for this call.
        let bytes = Arc::new(unsafe { items(bytes, len, "bytes")? }.to_vec());
        set(command, move |command| command.stdin(Stdin::Bytes(Arc::clone(&bytes))))
    })
}

/// Sets its standard input to a duplicate of this file descriptor; the caller keeps `fd`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_command_set_stdin_fd(
    command: Option<&mut millstream_command>,
    fd: i32,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let fd = duplicate_fd(fd)?;
        given(command, "command")?.0.try_set(move |command| Ok(command.stdin(Stdin::Fd(fd.try_clone()?))));
        Ok(())
    })
}

/// Sets its standard input to a file, which is opened when the command is started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_command_set_stdin_path(
    command: Option<&mut millstream_command>,
    path: *const c_char,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let path = unsafe { crate::boundary::path(path, "path")? }.to_owned();
        given(command, "command")?.0.try_set(move |command| {
            let name = path.to_string_lossy();
            let file = File::open(&path);
            let file = file.map_err(|error| Error::new(ErrorKind::OpenFailed).with_io(error).with_name(name))?;
            Ok(command.stdin(file))
        });
        Ok(())
    })
}

/// Sets its standard input to the bytes that a callback writes into the space it is given, as soon as each call returns.
///
/// `fill` is called with `user` from a thread of the library, which handles no signals. The command does not have to read
/// all of the bytes. If `fill` fails, the command gets the end of its input, and the reader of its output reports the
/// error after all of that output. `release` (which may be NULL) is called with `user` exactly one time, from any
/// thread, when `fill` will not be called any more, even if this call fails.
///
/// If the command ends before its input, `fill` may still be waiting, and is released when it returns. If `tokens` is
/// not NULL, these `count` tokens, which interrupt the waits of `fill`, are cancelled, and closing the reader waits for
/// `fill` to return.
///
/// The input can be used one time: opening a second reader with this command returns MILLSTREAM_ARGUMENT_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_command_set_stdin_callback(
    command: Option<&mut millstream_command>,
    fill: millstream_fill_callback,
    user: *mut c_void,
    release: millstream_release_callback,
    tokens: *const *const millstream_cancel_token,
    count: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let context = UserContext { user: User(user), release };
        let fill = given(fill, "fill")?;
        let tokens = match tokens.is_null() {
            true => None,
            // SAFETY: C lends the array and its tokens for this call.
            false => Some(unsafe { items(tokens, count, "tokens")? }),
        };
        // SAFETY: as above.
        let token = |&token: &*const millstream_cancel_token| given(unsafe { token.as_ref() }, "a token");
        let tokens: Option<Vec<CancelToken>> =
            tokens.map(|tokens| tokens.iter().map(|at| Ok(token(at)?.0.clone())).collect::<Result<_>>()).transpose()?;
        let input = Mutex::new(Some(Input { fill, context }));
        given(command, "command")?.0.try_set(move |command| {
            let input = input.lock().unwrap_or_else(PoisonError::into_inner).take();
            let input = input.ok_or_else(|| invalid("a command whose input has been used", "a new command"))?;
            Ok(command.stdin(match &tokens {
                Some(tokens) => Stdin::interruptible(input, tokens.clone()),
                None => Stdin::read(input),
            }))
        });
        Ok(())
    })
}

/// The standard input that C fills.
struct Input {
    fill: unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> isize,
    context: UserContext,
}

impl Read for Input {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        // SAFETY: this is a C function, called as documented in the header.
        counted(unsafe { (self.fill)(self.context.pointer(), space.as_mut_ptr().cast(), space.len()) })
            .map(|count| count.min(space.len()))
    }
}

/// Sets the destination of its standard output, for the command of a sink: MILLSTREAM_STDOUT_INHERIT by default. The
/// output of a source's command is always read.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_command_set_stdout(
    command: Option<&mut millstream_command>,
    to: MaybeUninit<millstream_stdout>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        chosen(to)?;
        given(command, "command")?.0.try_set(move |command| Ok(command.stdout(chosen(to)?)));
        Ok(())
    })
}

/// Sets its standard output to a duplicate of this file descriptor, for the command of a sink; the caller keeps `fd`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_command_set_stdout_fd(
    command: Option<&mut millstream_command>,
    fd: i32,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let fd = duplicate_fd(fd)?;
        given(command, "command")?.0.try_set(move |command| Ok(command.stdout(Stdout::Fd(fd.try_clone()?))));
        Ok(())
    })
}

/// Sets the destination of its standard error: MILLSTREAM_STDERR_FORWARD by default, which shows it while the command
/// runs, and also keeps its end for millstream_error_command(). MILLSTREAM_STDERR_CAPTURE only keeps the end.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_command_set_stderr(
    command: Option<&mut millstream_command>,
    to: MaybeUninit<millstream_stderr>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = chosen(to)?;
        set(command, move |command| command.stderr(to))
    })
}

/// Makes every exit status and every signal a success: millstream_reader_command_ends() and
/// millstream_writer_command_ends() report the status, but not as an error.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_command_allow_failure(
    command: Option<&mut millstream_command>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || set(command, Command::allow_failure))
}

/// Lets the kernel kill the command (SIGKILL) when this process ends in any way, even by SIGKILL. This works only on
/// Linux; it has no effect on other operating systems. It kills the command itself, but neither its children nor a
/// command that changes its user or gains privileges.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_command_ends_with_us(
    command: Option<&mut millstream_command>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || set(command, Command::ends_with_us))
}

/// Frees a command. NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_command_free(command: Option<Box<millstream_command>>) {
    free(command);
}

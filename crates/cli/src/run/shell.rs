//! `--shell`: a line that bash runs with `pipefail`, and the statuses of the commands of its last pipeline.
//!
//! bash stores them in `PIPESTATUS`, which only bash itself can read. The line is passed to bash unchanged. Before it,
//! bash reads the file that the variable `BASH_ENV` names. This file restores the variable and sets a trap that writes
//! `PIPESTATUS` to a pipe of this process when bash exits, whatever in the line causes that. The trap opens the pipe by
//! its name in `/proc`, so that bash and the commands of the line inherit no descriptor.
//!
//! The statuses are unknown if the line sets a trap on EXIT, if it ends with `exec`, if bash is killed, without
//! `/proc`, or if the environment puts bash into its POSIX mode, in which it does not read `BASH_ENV`. Whether the
//! line succeeded does not depend on them: the status of bash decides that.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use millstream::{Command, Result};

/// The variable that names the file which bash reads first.
const BASH_ENV: &str = "BASH_ENV";

/// A line that was started.
pub(super) struct Line {
    text: String,
    channel: Option<channel::Channel>,
    statuses: OnceCell<Vec<i32>>,
}

impl Line {
    /// Returns a line and the command that runs it. The line must exist until the command has ended.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Unsupported`](millstream::ErrorKind::Unsupported) if there is no bash.
    pub(super) fn new(line: &OsStr) -> Result<(Line, Command)> {
        let command = Command::shell(line)?;
        let channel = if is_posix() { None } else { channel::Channel::new() };
        let command = match &channel {
            Some(channel) => command.env(BASH_ENV, channel.preamble()),
            None => command,
        };
        let text = line.to_string_lossy().into_owned();
        Ok((Line { text, channel, statuses: OnceCell::new() }, command))
    }

    /// Returns the statuses of the commands of the last pipeline that bash ran, in their order, or none if they are
    /// unknown. bash has ended.
    pub(super) fn statuses(&self) -> &[i32] {
        let read = || self.channel.as_ref().and_then(|channel| parse(&channel.read()?)).unwrap_or_default();
        self.statuses.get_or_init(read)
    }

    /// Returns the command lines if the line consists only of a pipeline with this many commands.
    pub(super) fn commands(&self, count: usize) -> Option<Vec<&str>> {
        split(&self.text).filter(|commands| commands.len() == count)
    }

    /// Returns which commands of the last pipeline failed, if they are the reason for this status of bash.
    pub(super) fn blame(&self, status: i32) -> Option<String> {
        let statuses = self.statuses();
        let decisive = statuses.iter().rfind(|status| **status != 0);
        if statuses.len() < 2 || decisive != Some(&status) {
            return None;
        }
        let commands = self.commands(statuses.len());
        let failed = statuses.iter().enumerate().filter(|(_, status)| **status != 0).map(|(at, status)| {
            let signal = status.checked_sub(128).and_then(signal_hook::low_level::signal_name);
            let signal = signal.map(|name| format!(" ({name})")).unwrap_or_default();
            let words = commands.as_ref().map(|commands| format!(", `{}`", commands[at])).unwrap_or_default();
            format!("status {status}{signal} of command {} of {}{words}", at + 1, statuses.len())
        });
        Some(failed.collect::<Vec<_>>().join(", and "))
    }
}

/// Returns whether the environment puts bash into its POSIX mode. The commands of the line would then inherit the name
/// of the file, because bash would not read the file, which restores the variable.
fn is_posix() -> bool {
    let options = std::env::var_os("SHELLOPTS").unwrap_or_default();
    std::env::var_os("POSIXLY_CORRECT").is_some()
        || options.as_bytes().split(|byte| *byte == b':').any(|on| on == b"posix")
}

/// Parses the numbers that the trap has written.
fn parse(bytes: &[u8]) -> Option<Vec<i32>> {
    std::str::from_utf8(bytes).ok()?.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
}

/// Splits a line at each `|` outside quotes. Returns `None` if the line may be anything but one pipeline of simple
/// commands: only bash can parse all of its syntax.
fn split(line: &str) -> Option<Vec<&str>> {
    let mut commands = Vec::new();
    let (mut start, mut quote, mut before) = (0, None, ' ');
    let mut chars = line.trim().char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let after = chars.peek().map_or(' ', |(_, c)| *c);
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('"') | None, '`') => return None,
            (Some('"'), '$') if after == '(' => return None,
            (None | Some('"'), '\\') => drop(chars.next()),
            (Some(_), _) => {}
            (None, '$') if after == '\'' => return None,
            (None, '\'' | '"') => quote = Some(c),
            // Redirections such as 2>&1 and &>file.
            (None, '&') if before == '>' || before == '<' || after == '>' => {}
            (None, ';' | '&' | '(' | ')' | '{' | '}' | '\n') => return None,
            (None, '<') if after == '<' => return None,
            (None, '#') if before.is_whitespace() => return None,
            // In >| it is part of a redirection.
            (None, '|') if before == '>' => {}
            (None, '|') if after == '|' || after == '&' => return None,
            (None, '|') => {
                commands.push(line.trim()[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    commands.push(line.trim()[start..].trim());
    (quote.is_none() && commands.iter().all(|command| !command.is_empty())).then_some(commands)
}

/// Returns the text of the file that bash reads first. `pipe` is the name of the pipe, and `inherited` the value of
/// `BASH_ENV` that bash would have without this file.
fn preamble(pipe: &str, inherited: Option<OsString>) -> Vec<u8> {
    // Standard error is redirected first, so that neither a missing pipe nor `set -x` prints anything. The option
    // noclobber has no effect on >|.
    let trap = format!("trap '{{ builtin printf \"%s \" \"${{PIPESTATUS[@]}}\" >|{pipe}; }} 2>/dev/null' EXIT\n");
    match inherited {
        None => [b"unset BASH_ENV\n", trap.as_bytes()].concat(),
        Some(value) => {
            // bash expands the value as if it were between double quotes, and ignores a file that does not exist.
            let quoted = value.as_bytes().split(|byte| *byte == b'\'').collect::<Vec<_>>().join(&br"'\''"[..]);
            let read = "eval \"if [[ -e \\\"$BASH_ENV\\\" ]]; then . \\\"$BASH_ENV\\\"; fi\"\n";
            [trap.as_bytes(), b"BASH_ENV='", &quoted, b"'\n", read.as_bytes()].concat()
        }
    }
}

#[cfg(target_os = "linux")]
mod channel {
    use std::fs::File;
    use std::io::{PipeReader, PipeWriter, Read, Write};
    use std::os::fd::AsRawFd;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::{BASH_ENV, preamble};

    /// The file that bash reads first, and the pipe to which its trap writes. Both are opened by name.
    pub(super) struct Channel {
        preamble: File,
        statuses: PipeReader,
        /// Exists so that bash can open this end.
        _end: PipeWriter,
    }

    impl Channel {
        /// Returns `None` if the operating system refuses a file or a pipe.
        pub(super) fn new() -> Option<Channel> {
            let (statuses, end) = std::io::pipe().ok()?;
            let mut file = File::from(memfd_create(c"millstream", MemfdFlags::CLOEXEC).ok()?);
            file.write_all(&preamble(&name_of(&end), std::env::var_os(BASH_ENV))).ok()?;
            Some(Channel { preamble: file, statuses, _end: end })
        }

        /// Returns the name of the file.
        pub(super) fn preamble(&self) -> String {
            name_of(&self.preamble)
        }

        /// Returns what the trap has written. bash has ended.
        pub(super) fn read(&self) -> Option<Vec<u8>> {
            let mut bytes = vec![0; rustix::io::ioctl_fionread(&self.statuses).ok()? as usize];
            (&self.statuses).read_exact(&mut bytes).ok()?;
            Some(bytes)
        }
    }

    fn name_of(fd: &impl AsRawFd) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd())
    }
}

#[cfg(not(target_os = "linux"))]
mod channel {
    /// Without `/proc`, another process cannot open a descriptor of this one.
    pub(super) enum Channel {}

    impl Channel {
        pub(super) fn new() -> Option<Channel> {
            None
        }

        pub(super) fn preamble(&self) -> String {
            match *self {}
        }

        pub(super) fn read(&self) -> Option<Vec<u8>> {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_pipeline_are_told_apart() {
        for (line, commands) in [
            ("samtools view x.bam | cut -f3", &["samtools view x.bam", "cut -f3"][..]),
            (" a|b ", &["a", "b"]),
            (r#"grep 'a|b' "c|d" e\|f | wc -l"#, &[r#"grep 'a|b' "c|d" e\|f"#, "wc -l"]),
            (r#"echo "it's \" |" | cat"#, &[r#"echo "it's \" |""#, "cat"]),
            ("a 2>&1 | b &>x | c >|y", &["a 2>&1", "b &>x", "c >|y"]),
            ("a < x#y | b $HOME", &["a < x#y", "b $HOME"]),
            ("größe | ü", &["größe", "ü"]),
        ] {
            assert_eq!(split(line).as_deref(), Some(commands), "{line}");
        }
    }

    #[test]
    fn what_may_be_no_pipeline_has_no_commands() {
        let lines = "a; b | c,a && b | c,a || b,a | b &,(a | b),{ a | b },a $(b | c),a `b | c`,a \"$(b | c)\",\
                     a \"`b`\",a <<X | b,a | b # | c,a |& b,a $'b\\'|' c,a | 'b,a |,case x in a|b) c,a <(b | c),\
                     a\nb | c,";
        for line in lines.split(',') {
            assert_eq!(split(line), None, "{line}");
        }
    }

    #[test]
    fn statuses_are_numbers() {
        assert_eq!(parse(b"0 141 3 "), Some(vec![0, 141, 3]));
        assert_eq!(parse(b""), Some(vec![]));
        assert_eq!(parse(b"0 x "), None);
    }

    #[test]
    fn only_the_reason_is_blamed() {
        let line = |statuses: &[i32]| Line {
            text: "a | b".into(),
            channel: None,
            statuses: OnceCell::from(statuses.to_vec()),
        };
        let blame = |statuses: &[i32], status| line(statuses).blame(status);
        assert_eq!(blame(&[3, 0], 3).unwrap(), "status 3 of command 1 of 2, `a`");
        assert_eq!(
            blame(&[141, 4], 4).unwrap(),
            "status 141 (SIGPIPE) of command 1 of 2, `a`, and status 4 of command 2 of 2, `b`"
        );
        assert_eq!(blame(&[1, 0, 0], 1).unwrap(), "status 1 of command 1 of 3");
        // The line ended with `exit 5`, or with a single command.
        for (statuses, status) in [(&[3, 0][..], 5), (&[0, 0], 1), (&[3], 3), (&[], 3)] {
            assert_eq!(blame(statuses, status), None);
        }
    }
}

/* The part of all.c that is about pipes. */

/* The lines "0", "1", ... of a command, in several batches. */
static millstream_reader *numbers(int count) {
    char line[64];
    millstream_command *command;
    millstream_reader *reader;
    snprintf(line, sizeof line, "seq 0 %d", count - 1);
    command = shell_command(line);
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    millstream_command_free(command);
    return reader;
}

static millstream_pipe *piped(millstream_reader *reader) {
    millstream_framer *lines;
    millstream_pipe *pipe;
    MUST(millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, &lines, &error));
    MUST(millstream_pipe_new(reader, lines, &pipe, &error));
    return pipe;
}

static millstream_pipe *piped_text(const char *text) { return piped(memory_reader(text)); }

static long number_of(millstream_span item) {
    char digits[24];
    CHECK(item.len > 0 && item.len < sizeof digits);
    memcpy(digits, item.data, item.len);
    digits[item.len] = '\0';
    return strtol(digits, NULL, 10);
}

/* The parameters of a stage, and its counters. */
struct stage {
    long number;
    int calls;
    int released;
};

static void stage_released(void *user) { ((struct stage *)user)->released++; }

/* Lets the multiples of a number through. */
static millstream_code multiples(void *user, millstream_stage_scope *scope, millstream_span *items, size_t *count) {
    struct stage *stage = (struct stage *)user;
    size_t left = 0, i;
    (void)scope;
    stage->calls++;
    for (i = 0; i < *count; i++)
        if (number_of(items[i]) % stage->number == 0)
            items[left++] = items[i];
    *count = left;
    return MILLSTREAM_OK;
}

/* Fails at a number. */
static millstream_code fails_at(void *user, millstream_stage_scope *scope, millstream_span *items, size_t *count) {
    struct stage *stage = (struct stage *)user;
    size_t i;
    stage->calls++;
    for (i = 0; i < *count; i++) {
        if (number_of(items[i]) == stage->number) {
            *count = i;
            return millstream_stage_fail(scope, i, "no good");
        }
    }
    return MILLSTREAM_OK;
}

/* Fails at whatever begins with a letter. */
static millstream_code letters_fail(void *user, millstream_stage_scope *scope, millstream_span *items, size_t *count) {
    size_t i;
    (void)user;
    for (i = 0; i < *count; i++) {
        if (items[i].len > 0 && items[i].data[0] >= 'a') {
            *count = i;
            millstream_stage_fail(scope, i, NULL);
            return MILLSTREAM_NUMBER_INVALID;
        }
    }
    return MILLSTREAM_OK;
}

/* Words instead of lines, and "+" after each: parts of the records, and new bytes. */
static millstream_code words(void *user, millstream_stage_scope *scope, millstream_span *items, size_t *count) {
    size_t i;
    char *plus = millstream_stage_space(scope, 1);
    (void)user;
    CHECK(plus != NULL);
    *plus = '+';
    for (i = 0; i < *count; i++) {
        const char *at = items[i].data;
        const char *end = at + items[i].len;
        while (at < end) {
            const char *space = (const char *)memchr(at, ' ', (size_t)(end - at));
            millstream_span pair[2];
            pair[0].data = at;
            pair[0].len = (size_t)((space != NULL ? space : end) - at);
            pair[1].data = plus;
            pair[1].len = 1;
            pair[0].record = pair[1].record = items[i].record;
            CHECK(millstream_stage_put(scope, pair, 2, NULL) == MILLSTREAM_OK);
            at = space != NULL ? space + 1 : end;
        }
    }
    *count = 0;
    return MILLSTREAM_OK;
}

/* The record's number before each item. */
static millstream_code numbered(void *user, millstream_stage_scope *scope, millstream_span *items, size_t *count) {
    size_t i;
    (void)user;
    for (i = 0; i < *count; i++) {
        char bytes[64];
        int len = snprintf(bytes, sizeof bytes, "%d:%.*s", (int)items[i].record, (int)items[i].len, items[i].data);
        items[i].data = millstream_stage_keep(scope, bytes, (size_t)len);
        items[i].len = (size_t)len;
        CHECK(items[i].data != NULL);
    }
    return MILLSTREAM_OK;
}

/* Wrong in one way or another. */
static millstream_code misbehaving(void *user, millstream_stage_scope *scope, millstream_span *items, size_t *count) {
    switch (((struct stage *)user)->number) {
    case 0: /* leaves more than there were */
        ++*count;
        return MILLSTREAM_OK;
    case 1: /* does not say where */
        return MILLSTREAM_STAGE_FAILED;
    case 2: /* fails at what it was not given */
        return millstream_stage_fail(scope, *count, "where?");
    case 3: /* cannot go on */
        *count = 0;
        millstream_stage_fail(scope, 0, "never again");
        return MILLSTREAM_STAGE_PANICKED;
    default: /* leaves bytes that are nowhere */
        items[0].data = NULL;
        items[0].len = 1;
        FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_stage_put(scope, items, 1, &error));
        return MILLSTREAM_OK;
    }
}

/* Counts from 0 on, up to a limit, and may cancel on the way. */
struct counted {
    long next;
    long limit;
    long cancel_at;
    int calls;
};

static size_t count_them(void *user, const millstream_span *items, size_t count) {
    struct counted *counted = (struct counted *)user;
    size_t i;
    counted->calls++;
    for (i = 0; i < count; i++) {
        if (counted->next == counted->limit)
            return i;
        CHECK(number_of(items[i]) == counted->next && items[i].record == (uint64_t)counted->next);
        counted->next++;
        if (counted->next == counted->cancel_at)
            millstream_cancel_token_cancel(alarm_token);
    }
    return count;
}

/* What a pipe writes. */
static void gives(millstream_pipe *pipe, const char *expected) {
    millstream_writer *writer;
    const char *bytes;
    size_t len;
    MUST(millstream_writer_memory(NULL, &writer, &error));
    MUST(millstream_pipe_write_to(pipe, writer, NULL, &error));
    MUST(millstream_writer_close(writer, &error));
    MUST(millstream_writer_taken_memory(writer, &bytes, &len, &error));
    CHECK(is(bytes, len, expected));
    millstream_writer_free(writer);
    millstream_pipe_free(pipe);
}

static void pipe_stages(void) {
    struct stage by_three = {3, 0, 0}, by_two = {2, 0, 0};
    const millstream_command_end *ends;
    const millstream_stage_stats *stages;
    millstream_pipe *pipe = piped(numbers(100000));
    millstream_summary summary;
    uint64_t elapsed, waited;
    size_t count;

    MUST(millstream_pipe_add_stage(pipe, "three", multiples, &by_three, stage_released, &error));
    MUST(millstream_pipe_add_stage(pipe, "two", multiples, &by_two, stage_released, &error));
    MUST(millstream_pipe_measure(pipe, &error));
    MUST(millstream_pipe_run(pipe, NULL, NULL, &summary, &error));
    CHECK(summary.records == 100000 && summary.items == 16667 && summary.failed == 0 && !summary.ended_early);
    /* A call for each batch, not for each record. */
    CHECK(by_three.calls > 1 && by_three.calls < 1000 && by_two.calls == by_three.calls);
    MUST(millstream_pipe_command_ends(pipe, &ends, &count, &error));
    CHECK(count == 1 && ends[0].status == MILLSTREAM_STATUS_EXITED && ends[0].value == 0);
    MUST(millstream_pipe_stats(pipe, &elapsed, &waited, &stages, &count, &error));
    CHECK(count == 3 && elapsed > 0 && waited <= elapsed);
    CHECK(strcmp(stages[0].name, "three") == 0 && stages[0].items == 33334 && stages[0].bytes > 33334);
    CHECK(strcmp(stages[1].name, "two") == 0 && stages[1].items == 16667 && stages[1].time_ns > 0);
    /* It has ended, and reports nothing else. */
    MUST(millstream_pipe_run(pipe, NULL, NULL, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_take(pipe, 1, &error));
    CHECK(by_three.released == 0);
    millstream_pipe_free(pipe);
    CHECK(by_three.released == 1 && by_two.released == 1);

    pipe = piped_text("one two\n\nthree\n");
    MUST(millstream_pipe_add_stage(pipe, "words", words, NULL, NULL, &error));
    MUST(millstream_pipe_skip(pipe, 1, &error));
    MUST(millstream_pipe_add_stage(pipe, "numbered", numbered, NULL, NULL, &error));
    gives(pipe, "0:+\n0:two\n0:+\n2:three\n2:+\n");
}

/* The square of each odd number; fails at a number. */
static millstream_code odd_squares(void *user, millstream_item_scope *scope, const char *item, size_t len) {
    millstream_span span;
    char text[32];
    long number;
    span.data = item;
    span.len = len;
    span.record = 0;
    number = number_of(span);
    if (number == ((struct stage *)user)->number)
        return millstream_item_fail(scope, "no good");
    if (number % 2 == 0)
        return MILLSTREAM_OK;
    snprintf(text, sizeof text, "%ld", number * number);
    CHECK(millstream_item_append(scope, text, 1, NULL) == MILLSTREAM_OK);
    return millstream_item_append(scope, text + 1, strlen(text) - 1, NULL);
}

/* Expects the squares in order. */
static size_t expect_squares(void *user, const millstream_span *items, size_t count) {
    struct counted *counted = (struct counted *)user;
    size_t i;
    for (i = 0; i < count; i++) {
        CHECK(number_of(items[i]) == counted->next * counted->next && items[i].record == (uint64_t)counted->next);
        counted->next += 2;
    }
    return count;
}

static size_t sum_them(void *user, const millstream_span *items, size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        *(long *)user += number_of(items[i]);
    return count;
}

static void pipe_parallel(void) {
    size_t threads;
    for (threads = 1; threads <= 4; threads++) {
        struct stage stage = {-1, 0, 0}, failing = {7777, 0, 0};
        struct counted seen = {1, -1, -1, 0}, before = {1, -1, -1, 0};
        millstream_pipe *pipe = piped(numbers(20000));
        uint64_t record = 0;
        long sum = 0;
        MUST(millstream_pipe_add_parallel(pipe, "squares", threads, true, odd_squares, &stage, stage_released, &error));
        MUST(millstream_pipe_run(pipe, expect_squares, &seen, NULL, &error));
        CHECK(seen.next == 20001);
        millstream_pipe_free(pipe);
        CHECK(stage.released == 1);

        pipe = piped(numbers(1000));
        MUST(millstream_pipe_add_parallel(pipe, "squares", threads, false, odd_squares, &stage, NULL, &error));
        MUST(millstream_pipe_run(pipe, sum_them, &sum, NULL, &error));
        CHECK(sum == 166666500); /* 1 * 1 + 3 * 3 + … + 999 * 999 */
        millstream_pipe_free(pipe);

        /* An error comes after all results before it. */
        pipe = piped(numbers(20000));
        MUST(millstream_pipe_add_parallel(pipe, "squares", threads, true, odd_squares, &failing, NULL, &error));
        CHECK(millstream_pipe_run(pipe, expect_squares, &before, NULL, &error) == MILLSTREAM_STAGE_FAILED);
        CHECK(millstream_error_record(error, &record) && record == 7777 && before.next == 7777);
        CHECK(strstr(millstream_error_message(error), "no good") != NULL);
        millstream_error_free(error);
        error = NULL;
        millstream_pipe_free(pipe);

        pipe = piped(numbers(20000));
        MUST(millstream_pipe_set_on_error(pipe, MILLSTREAM_ON_ERROR_SKIP, &error));
        MUST(millstream_pipe_add_parallel(pipe, "squares", threads, true, odd_squares, &failing, NULL, &error));
        MUST(millstream_pipe_take(pipe, 5000, &error));
        sum = 0;
        MUST(millstream_pipe_run(pipe, sum_them, &sum, NULL, &error));
        millstream_pipe_free(pipe);
    }
    {
        struct stage stage = {-1, 0, 0};
        millstream_pipe *pipe = piped_text("1\n");
        FAILS(MILLSTREAM_ARGUMENT_INVALID,
              millstream_pipe_add_parallel(pipe, "none", 0, true, odd_squares, &stage, stage_released, &error));
        CHECK(stage.released == 1);
        FAILS(MILLSTREAM_ARGUMENT_INVALID,
              millstream_pipe_add_parallel(pipe, "none", 2, true, NULL, NULL, NULL, &error));
        FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_item_append(NULL, "x", 1, &error));
        CHECK(millstream_item_fail(NULL, "x") == MILLSTREAM_STAGE_FAILED);
        MUST(millstream_pipe_add_parallel(pipe, "two", 2, true, odd_squares, &stage, NULL, &error));
        FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_merge(pipe, memory_reader("2\n"), &error));
        millstream_pipe_free(pipe);
        pipe = piped_text("1\n");
        MUST(millstream_pipe_merge(pipe, memory_reader("2\n"), &error));
        FAILS(MILLSTREAM_ARGUMENT_INVALID,
              millstream_pipe_add_parallel(pipe, "two", 2, true, odd_squares, &stage, NULL, &error));
        millstream_pipe_free(pipe);
    }
}

/* Operations of an asynchronous stage, each in a thread of its own. */
struct operations {
    struct stage stage;
    pthread_mutex_t mutex;
    int under_way, most;
    pthread_t threads[300];
    int count;
};

struct operation {
    struct operations *all;
    millstream_completion *completion;
    long number;
};

/* Completes with the square of an odd number; some take longer than others. */
static void *operate(void *given) {
    struct operation operation = *(struct operation *)given;
    char text[32];
    free(given);
    poll(NULL, 0, (int)(operation.number % 4));
    pthread_mutex_lock(&operation.all->mutex);
    operation.all->under_way--;
    pthread_mutex_unlock(&operation.all->mutex);
    snprintf(text, sizeof text, "%ld", operation.number * operation.number);
    if (operation.number == operation.all->stage.number)
        millstream_completion_fail(operation.completion, "no good");
    else if (operation.number % 2 == 0)
        millstream_completion_skip(operation.completion);
    else
        CHECK(millstream_completion_pass(operation.completion, text, strlen(text), NULL) == MILLSTREAM_OK);
    return NULL;
}

static void start_operation(void *user, const char *item, size_t len, millstream_completion *completion) {
    struct operations *all = (struct operations *)user;
    struct operation *operation = (struct operation *)malloc(sizeof *operation);
    millstream_span span;
    span.data = item;
    span.len = len;
    span.record = 0;
    operation->all = all;
    operation->completion = completion;
    operation->number = number_of(span);
    pthread_mutex_lock(&all->mutex);
    if (++all->under_way > all->most)
        all->most = all->under_way;
    pthread_mutex_unlock(&all->mutex);
    CHECK(pthread_create(&all->threads[all->count++], NULL, operate, operation) == 0);
}

static void operations_released(void *user) { ((struct operations *)user)->stage.released++; }

static void end_operations(struct operations *all) {
    while (all->count > 0)
        CHECK(pthread_join(all->threads[--all->count], NULL) == 0);
}

/* Completes immediately, in the function of the stage. */
static void start_immediately(void *user, const char *item, size_t len, millstream_completion *completion) {
    (void)user;
    if (len == 0)
        FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_completion_pass(completion, NULL, 1, &error));
    else
        MUST(millstream_completion_pass(completion, item, len - 1, &error));
}

static void pipe_asynchronous(void) {
    size_t most;
    for (most = 1; most <= 7; most += 3) {
        struct operations all = {{-1, 0, 0}, PTHREAD_MUTEX_INITIALIZER, 0, 0, {0}, 0};
        struct counted seen = {1, -1, -1, 0}, before = {1, -1, -1, 0};
        millstream_pipe *pipe = piped(numbers(300));
        uint64_t record = 0;
        long sum = 0;
        MUST(
            millstream_pipe_add_async(pipe, "squares", most, true, start_operation, &all, operations_released, &error));
        MUST(millstream_pipe_run(pipe, expect_squares, &seen, NULL, &error));
        CHECK(seen.next == 301 && all.most >= 1 && all.most <= (int)most);
        millstream_pipe_free(pipe);
        CHECK(all.stage.released == 1);
        end_operations(&all);

        pipe = piped(numbers(100));
        MUST(millstream_pipe_add_async(pipe, "squares", most, false, start_operation, &all, NULL, &error));
        MUST(millstream_pipe_run(pipe, sum_them, &sum, NULL, &error));
        CHECK(sum == 166650); /* 1 * 1 + 3 * 3 + ... + 99 * 99 */
        millstream_pipe_free(pipe);
        end_operations(&all);

        /* An error comes after all results before it; operations that have begun end after the pipe was freed. */
        all.stage.number = 77;
        pipe = piped(numbers(200));
        MUST(millstream_pipe_add_async(pipe, "squares", most, true, start_operation, &all, NULL, &error));
        CHECK(millstream_pipe_run(pipe, expect_squares, &before, NULL, &error) == MILLSTREAM_STAGE_FAILED);
        CHECK(millstream_error_record(error, &record) && record == 77 && before.next == 77);
        CHECK(strstr(millstream_error_message(error), "no good") != NULL);
        millstream_error_free(error);
        error = NULL;
        millstream_pipe_free(pipe);
        end_operations(&all);
    }
    {
        struct operations all = {{-1, 0, 0}, PTHREAD_MUTEX_INITIALIZER, 0, 0, {0}, 0};
        millstream_pipe *pipe = piped_text("one\ntwo\n");
        MUST(millstream_pipe_add_async(pipe, "shorter", 2, true, start_immediately, NULL, NULL, &error));
        FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_merge(pipe, memory_reader("2\n"), &error));
        gives(pipe, "on\ntw\n");
        pipe = piped_text("one\n\n");
        MUST(millstream_pipe_add_async(pipe, "shorter", 2, true, start_immediately, NULL, NULL, &error));
        FAILS(MILLSTREAM_STAGE_FAILED, millstream_pipe_run(pipe, NULL, NULL, NULL, &error));
        FAILS(MILLSTREAM_ARGUMENT_INVALID,
              millstream_pipe_add_async(pipe, "none", 0, true, start_immediately, &all, operations_released, &error));
        CHECK(all.stage.released == 1);
        FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_add_async(pipe, "none", 2, true, NULL, NULL, NULL, &error));
        FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_completion_pass(NULL, "x", 1, &error));
        millstream_completion_skip(NULL);
        millstream_completion_fail(NULL, NULL);
        millstream_pipe_free(pipe);
    }
}

static void pipe_ends_early(void) {
    millstream_command *yes = shell_command("yes");
    millstream_reader *reader;
    millstream_pipe *pipe;
    millstream_summary summary;

    MUST(millstream_reader_command(yes, NULL, &reader, &error));
    millstream_command_free(yes);
    pipe = piped(reader);
    MUST(millstream_pipe_take(pipe, 3, &error));
    MUST(millstream_pipe_run(pipe, NULL, NULL, &summary, &error));
    CHECK(summary.items == 3 && summary.ended_early);
    millstream_pipe_free(pipe);
}

/* Every record: those before it have reached the sink. */
static void pipe_failing(void) {
    enum { total = 40 };
    long bad;
    int way;
    for (bad = 0; bad < total; bad++) {
        for (way = 0; way < 3; way++) {
            struct stage stage = {bad, 0, 0}, other = {bad + 7, 0, 0};
            struct counted seen = {0, way == 2 ? bad : -1, -1, 0};
            millstream_pipe *pipe = piped(numbers(total));
            uint64_t record = total;
            if (way == 0)
                MUST(millstream_pipe_set_batch(pipe, 7, &error));
            if (way == 1) /* a later stage may fail at an earlier record */
                MUST(millstream_pipe_add_stage(pipe, "other", fails_at, &other, NULL, &error));
            if (way != 2)
                MUST(millstream_pipe_add_stage(pipe, "stage", fails_at, &stage, NULL, &error));
            CHECK(millstream_pipe_run(pipe, count_them, &seen, NULL, &error) == MILLSTREAM_STAGE_FAILED);
            CHECK(millstream_error_record(error, &record) && record == (uint64_t)bad && seen.next == bad);
            CHECK(way == 2 || strstr(millstream_error_message(error), "no good") != NULL);
            millstream_error_free(error);
            error = NULL;
            FAILS(MILLSTREAM_CLOSED, millstream_pipe_run(pipe, NULL, NULL, NULL, &error));
            millstream_pipe_free(pipe);
        }
    }
}

static void pipe_failing_sources(void) {
    millstream_command *command = shell_command("seq 0 49999; exit 3");
    struct counted seen = {0, -1, -1, 0};
    millstream_reader *reader;
    millstream_summary summary;
    millstream_pipe *pipe;

    MUST(millstream_reader_command(command, NULL, &reader, &error));
    millstream_command_free(command);
    pipe = piped(reader);
    FAILS(MILLSTREAM_COMMAND_FAILED, millstream_pipe_run(pipe, count_them, &seen, &summary, &error));
    CHECK(seen.next == 50000 && summary.records == 50000 && seen.calls < 1000);
    millstream_pipe_free(pipe);
}

static void pipe_passing_over(void) {
    millstream_writer *bad, *copy;
    millstream_pipe *pipe = piped_text("1\nx\r\n3\ny\nz");
    millstream_summary summary;
    const char *bytes;
    size_t len;

    MUST(millstream_pipe_set_on_error(pipe, MILLSTREAM_ON_ERROR_SKIP, &error));
    MUST(millstream_pipe_add_stage(pipe, "digits", letters_fail, NULL, NULL, &error));
    MUST(millstream_pipe_run(pipe, NULL, NULL, &summary, &error));
    CHECK(summary.items == 2 && summary.failed == 3);
    millstream_pipe_free(pipe);

    pipe = piped_text("1\nx\r\n3\ny\nz");
    MUST(millstream_writer_memory(NULL, &bad, &error));
    MUST(millstream_writer_memory(NULL, &copy, &error));
    MUST(millstream_pipe_set_quarantine(pipe, bad, &error));
    MUST(millstream_pipe_tee(pipe, copy, &error));
    MUST(millstream_pipe_add_stage(pipe, "digits", letters_fail, NULL, NULL, &error));
    /* They are lent, and given back. */
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_close(bad, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_tee(pipe, bad, &error));
    gives(pipe, "1\n3\n");
    MUST(millstream_writer_close(bad, &error));
    MUST(millstream_writer_taken_memory(bad, &bytes, &len, &error));
    CHECK(is(bytes, len, "x\r\ny\nz"));
    MUST(millstream_writer_close(copy, &error));
    MUST(millstream_writer_taken_memory(copy, &bytes, &len, &error));
    CHECK(is(bytes, len, "1\nx\n3\ny\nz\n"));
    millstream_writer_free(bad);
    millstream_writer_free(copy);

    pipe = piped_text("1\nx\n");
    MUST(millstream_pipe_set_on_error(pipe, MILLSTREAM_ON_ERROR_STOP, &error));
    MUST(millstream_pipe_add_stage(pipe, "digits", letters_fail, NULL, NULL, &error));
    FAILS(MILLSTREAM_NUMBER_INVALID, millstream_pipe_run(pipe, NULL, NULL, NULL, &error));
    millstream_pipe_free(pipe);
}

static void pipe_cancelling(void) {
    struct counted seen = {0, -1, 50005, 0};
    millstream_pipe *pipe = piped(numbers(100000));

    MUST(millstream_cancel_token_new(&alarm_token, &error));
    MUST(millstream_pipe_set_cancel(pipe, alarm_token, &error));
    MUST(millstream_pipe_set_batch(pipe, 10, &error));
    FAILS(MILLSTREAM_CANCELLED, millstream_pipe_run(pipe, count_them, &seen, NULL, &error));
    CHECK(seen.next >= 50005 && seen.next < 50015);
    MUST(millstream_cancel_token_reset(alarm_token));
    seen.cancel_at = -1;
    MUST(millstream_pipe_run(pipe, count_them, &seen, NULL, &error));
    CHECK(seen.next == 100000);
    millstream_pipe_free(pipe);
    millstream_cancel_token_free(alarm_token);
}

/* Of lines that say their own numbers. */
static size_t their_own_numbers(void *user, const millstream_span *items, size_t count) {
    size_t i;
    (void)user;
    for (i = 0; i < count; i++)
        CHECK((long)items[i].record == number_of(items[i]));
    return count;
}

static void pipe_merging(void) {
    struct stage even = {2, 0, 0}, fails = {8, 0, 0};
    millstream_pipe *pipe = piped_text("0\n1\n2\n");
    millstream_summary summary;
    uint64_t record = 0;

    MUST(millstream_pipe_merge(pipe, numbers(10), &error));
    MUST(millstream_pipe_add_stage(pipe, "even", multiples, &even, NULL, &error));
    MUST(millstream_pipe_run(pipe, their_own_numbers, NULL, &summary, &error));
    CHECK(summary.records == 13 && summary.items == 7);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_merge(pipe, memory_reader("late\n"), &error));
    millstream_pipe_free(pipe);

    pipe = piped_text("0\n1\n2\n");
    MUST(millstream_pipe_merge(pipe, numbers(10), &error));
    MUST(millstream_pipe_add_stage(pipe, "even", multiples, &even, NULL, &error));
    MUST(millstream_pipe_add_stage(pipe, "fails", fails_at, &fails, NULL, &error));
    CHECK(millstream_pipe_run(pipe, their_own_numbers, NULL, NULL, &error) == MILLSTREAM_STAGE_FAILED);
    CHECK(millstream_error_record(error, &record) && record == 8);
    millstream_error_free(error);
    error = NULL;
    millstream_pipe_free(pipe);
}

/* A pipe that goes on with the output of a command. */
static millstream_code through(millstream_pipe *pipe, const char *line) {
    millstream_command *command = shell_command(line);
    millstream_framer *lines;
    millstream_code code;
    MUST(millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, &lines, &error));
    code = millstream_pipe_through(pipe, command, lines, &error);
    millstream_command_free(command);
    return code;
}

static void pipe_through_commands(void) {
    struct stage by_three = {3, 0, 0}, by_two = {2, 0, 0}, bad = {4, 0, 0};
    struct counted seen = {0, -1, -1, 0};
    millstream_writer *bad_lines;
    millstream_pipe *pipe = piped(numbers(20));
    millstream_command *command;
    millstream_reader *reader;
    const char *bytes;
    size_t len;

    MUST(millstream_pipe_add_stage(pipe, "three", multiples, &by_three, stage_released, &error));
    MUST(through(pipe, "sort -rn"));
    MUST(millstream_pipe_add_stage(pipe, "two", multiples, &by_two, stage_released, &error));
    MUST(through(pipe, "cat"));
    gives(pipe, "18\n12\n6\n0\n");
    CHECK(by_three.released == 1 && by_two.released == 1);

    /* An error before the command follows its output. */
    pipe = piped(numbers(20));
    MUST(millstream_pipe_add_stage(pipe, "bad", fails_at, &bad, NULL, &error));
    MUST(through(pipe, "cat"));
    CHECK(millstream_pipe_run(pipe, count_them, &seen, NULL, &error) == MILLSTREAM_STAGE_FAILED && seen.next == 4);
    CHECK(strstr(millstream_error_message(error), "no good") != NULL);
    millstream_error_free(error);
    error = NULL;
    millstream_pipe_free(pipe);
    /* So does one of the command. */
    pipe = piped(numbers(20));
    MUST(through(pipe, "head -n 5; exit 3"));
    seen.next = 0;
    FAILS(MILLSTREAM_COMMAND_FAILED, millstream_pipe_run(pipe, count_them, &seen, NULL, &error));
    CHECK(seen.next == 5);
    millstream_pipe_free(pipe);
    /* Settings before it are for the stages before it. */
    MUST(millstream_writer_memory(NULL, &bad_lines, &error));
    pipe = piped_text("1\nx\n2\n");
    MUST(millstream_pipe_add_stage(pipe, "letters", letters_fail, NULL, NULL, &error));
    MUST(millstream_pipe_set_quarantine(pipe, bad_lines, &error));
    MUST(through(pipe, "cat; echo y"));
    gives(pipe, "1\n2\ny\n");
    MUST(millstream_writer_close(bad_lines, &error));
    MUST(millstream_writer_taken_memory(bad_lines, &bytes, &len, &error));
    CHECK(is(bytes, len, "x\n"));
    millstream_writer_free(bad_lines);

    /* Sources and commands that would never end. */
    command = shell_command("echo one; exec sleep 1000");
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    millstream_command_free(command);
    pipe = piped(reader);
    MUST(through(pipe, "cat"));
    MUST(millstream_pipe_take(pipe, 1, &error));
    gives(pipe, "one\n");
    pipe = piped(numbers(1000000));
    MUST(through(pipe, "head -n 1"));
    gives(pipe, "0\n");

    FAILS(MILLSTREAM_ARGUMENT_INVALID, through(NULL, "cat"));
    pipe = piped(numbers(2));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_through(pipe, NULL, NULL, &error));
    command = shell_command("");
    MUST(millstream_command_set_current_dir(command, "/nowhere", &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_through(pipe, command, NULL, &error));
    {
        millstream_framer *lines;
        MUST(millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, &lines, &error));
        FAILS(MILLSTREAM_COMMAND_NOT_STARTED, millstream_pipe_through(pipe, command, lines, &error));
    }
    millstream_command_free(command);
    FAILS(MILLSTREAM_CLOSED, millstream_pipe_run(pipe, NULL, NULL, NULL, &error));
    millstream_pipe_free(pipe);
}

static void pipe_mistakes(void) {
    struct stage stage = {0, 0, 0};
    const millstream_code codes[] = {MILLSTREAM_ARGUMENT_INVALID, MILLSTREAM_STAGE_FAILED, MILLSTREAM_ARGUMENT_INVALID,
                                     MILLSTREAM_STAGE_PANICKED, MILLSTREAM_ARGUMENT_INVALID};
    const char *bytes;
    size_t len;
    millstream_framer *framer;
    millstream_reader *reader;
    millstream_pipe *pipe;

    for (stage.number = 0; stage.number < 5; stage.number++) {
        pipe = piped_text("a\nb\n");
        MUST(millstream_pipe_set_on_error(pipe, MILLSTREAM_ON_ERROR_SKIP, &error));
        MUST(millstream_pipe_add_stage(pipe, "mistake", misbehaving, &stage, NULL, &error));
        FAILS(codes[stage.number], millstream_pipe_run(pipe, NULL, NULL, NULL, &error));
        millstream_pipe_free(pipe);
    }
    pipe = piped_text("a\n");
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_pipe_set_on_error(pipe, (millstream_on_error)9, &error));
    /* What is given away is released, whatever happens. */
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_add_stage(pipe, "none", NULL, &stage, stage_released, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_add_stage(NULL, "none", words, &stage, stage_released, &error));
    CHECK(stage.released == 2);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_tee(pipe, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_merge(pipe, NULL, &error));
    gives(pipe, "a\n");
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_pipe_new(memory_reader("a\n"), NULL, &pipe, &error));
    CHECK(pipe == NULL);
    CHECK(millstream_stage_keep(NULL, "a", 1) == NULL && millstream_stage_space(NULL, 1) == NULL);
    CHECK(millstream_stage_fail(NULL, 0, NULL) == MILLSTREAM_STAGE_FAILED);
    millstream_pipe_free(NULL);

    /* What those need who write their own. */
    MUST(millstream_framer_delimiter("; ", 2, MILLSTREAM_DELIMITED_TRIMMED, &framer, &error));
    MUST(millstream_framer_terminator(framer, &bytes, &len, &error));
    CHECK(is(bytes, len, "; "));
    millstream_framer_free(framer);
    reader = memory_reader("now\n");
    CHECK(millstream_reader_waits(reader) == MILLSTREAM_WAITS_NO &&
          millstream_reader_waits(NULL) == MILLSTREAM_WAITS_NO);
    millstream_reader_free(reader);
}

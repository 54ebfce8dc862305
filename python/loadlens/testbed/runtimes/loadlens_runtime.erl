%% What this emulator's schedulers, processes and memory did, one JSON object a second, appended to a file of
%% its own in the folder LOADLENS_RUNTIME. Two processes: one samples, the other walks the list of processes
%% for the longest message queue, so that a process that does not answer holds up no sample. They have the
%% usual priority: how late the first wakes is what any process waits for a scheduler.
-module(loadlens_runtime).
-export([start/0]).

-define(LOOK_MS, 100).          % between two looks at the run queues
-define(LOOKS, 10).             % of them in a sample
-define(MOST_SCANNED, 100000).  % processes; to walk more would cost more than 5 % of a core

start() ->
    case os:getenv("LOADLENS_RUNTIME") of
        false -> ok;
        Folder -> spawn(fun() -> run(filename:join(Folder, os:getpid() ++ ".jsonl")) end)
    end.

run(Path) ->
    erlang:system_flag(scheduler_wall_time, true), % for as long as this process lives
    Parent = self(),
    Scanner = spawn_link(fun() -> scanner(Parent) end),
    Scanner ! scan,
    look(#{path => Path, file => none, scanner => Scanner, wall => wall(), at => now_native(), busy => #{}, cost => 0.0}).

look(State) ->
    Seen = [{late(), erlang:statistics(total_run_queue_lengths)} || _ <- lists:seq(1, ?LOOKS)],
    look(sample(Seen, State)).

late() ->
    Began = now_native(),
    receive after ?LOOK_MS -> ok end,
    max(0.0, seconds(now_native() - Began) - ?LOOK_MS / 1000).

sample(Seen, #{wall := Before, at := At, busy := Busy, cost := Cost, scanner := Scanner} = State) ->
    Began = now_native(),
    Wall = wall(),
    Took = seconds(Began - At),
    Shares = shares(Before, Wall),
    Sums = [{Kind, maps:get(Kind, Busy, 0.0) + Took * lists:sum(of_kind(Kind, Shares))} || Kind <- kinds()],
    Queues = [Queue || {_, Queue} <- Seen],
    {Collections, Words, _} = erlang:statistics(garbage_collection),
    {Reductions, _} = erlang:statistics(reductions),
    {{input, In}, {output, Out}} = erlang:statistics(io),
    Line = object([
        {t, clock()},
        {schedulers, {[{normal, erlang:system_info(schedulers_online)},
                       {dirty_cpu, erlang:system_info(dirty_cpu_schedulers_online)},
                       {dirty_io, erlang:system_info(dirty_io_schedulers)}]}},
        {busy_s, {Sums}},
        {busiest, lists:max(of_kind(normal, Shares))},
        {run_queue_mean, lists:sum(Queues) / ?LOOKS},
        {run_queue_max, lists:max(Queues)},
        {late_max_s, lists:max([Late || {Late, _} <- Seen])},
        {processes, erlang:system_info(process_count)},
        {process_limit, erlang:system_info(process_limit)},
        {ports, erlang:system_info(port_count)},
        {memory, {erlang:memory()}},
        {gc_runs, Collections},
        {gc_reclaimed, Words * erlang:system_info(wordsize)},
        {reductions, Reductions},
        {io_in, In},
        {io_out, Out},
        {longest_queue, longest(Scanner)},
        {cost_s, Cost}
    ]),
    File = opened(State),
    ok = file:write(File, [Line, $\n]),
    Spent = seconds(now_native() - Began),
    State#{file := File, wall := Wall, at := Began, busy := maps:from_list(Sums), cost := Cost + Spent}.

opened(#{file := none, path := Path}) ->
    {ok, File} = file:open(Path, [append, raw]), % only now: a command that ends at once leaves no file
    File;
opened(#{file := File}) ->
    File.

%% What the walk since the last sample found; null while it still goes on.
longest(Scanner) ->
    receive
        {longest, Found} ->
            Scanner ! scan,
            Found
    after 0 -> null
    end.

scanner(Parent) ->
    receive scan -> ok end,
    Processes = processes(),
    Parent ! {longest, case length(Processes) > ?MOST_SCANNED of
        true -> null;
        false -> lists:foldl(fun longer/2, 0, Processes)
    end},
    scanner(Parent).

longer(Process, Longest) ->
    case erlang:process_info(Process, message_queue_len) of
        {_, Length} when Length > Longest -> Length;
        _ -> Longest % shorter, or it has ended
    end.

wall() -> lists:keysort(1, erlang:statistics(scheduler_wall_time_all)).

%% Which share of the time since the last sample each scheduler was busy.
shares(Before, Now) ->
    [{kind(Id), (A1 - A0) / max(1, T1 - T0)} || {{Id, A0, T0}, {Id, A1, T1}} <- lists:zip(Before, Now)].

kinds() -> [normal, dirty_cpu, dirty_io].

kind(Id) ->
    Normal = erlang:system_info(schedulers),
    DirtyCpu = Normal + erlang:system_info(dirty_cpu_schedulers),
    if
        Id =< Normal -> normal;
        Id =< DirtyCpu -> dirty_cpu;
        true -> dirty_io
    end.

of_kind(Kind, Shares) -> [Share || {Of, Share} <- Shares, Of =:= Kind].

now_native() -> erlang:monotonic_time().

seconds(Native) -> Native / erlang:convert_time_unit(1, second, native).

%% CLOCK_MONOTONIC in ns, which the emulator's own monotonic time is not; null where it uses another clock.
clock() ->
    Source = erlang:system_info(os_monotonic_time_source),
    case proplists:get_value(clock_id, Source) of
        'CLOCK_MONOTONIC' -> erlang:convert_time_unit(proplists:get_value(time, Source), native, nanosecond);
        _ -> null
    end.

%% JSON of names and numbers; an object within is a tuple of its pairs.
object(Pairs) -> [${, lists:join($,, [[$", atom_to_list(Name), $", $:, json(Value)] || {Name, Value} <- Pairs]), $}].

json({Pairs}) -> object(Pairs);
json(null) -> "null";
json(Number) when is_integer(Number) -> integer_to_list(Number);
json(Number) -> io_lib:format("~.6f", [Number]).

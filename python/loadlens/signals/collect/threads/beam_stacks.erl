%% Runs in an emulator of its own and reads where the processes of another node are. It calls functions of the
%% language there and loads no code. Each packet from standard input is answered by the processes at that moment:
%% lines of fields that are separated by tabs, a process before its frames, the innermost first.
-module(beam_stacks).
-export([serve/1]).

-define(ITEMS, [registered_name, status, message_queue_len, monitors, current_stacktrace]).
-define(MOST, 5000).          % processes: to read more takes too much from the service
-define(WITHIN_MS, 3000).

serve(Node) ->
    Port = open_port({fd, 0, 1}, [binary, eof, {packet, 4}]),
    true = net_kernel:connect_node(Node),
    Root = call(Node, code, root_dir, []),
    serve(Port, Node, #{root => Root, processes => #{}, modules => #{}}).

serve(Port, Node, Known) ->
    receive
        {Port, {data, _}} ->
            {Text, Now} = try dump(Node, Known)
            catch
                {processes, Count} -> {io_lib:format("E\tit has ~b processes, more than ~b", [Count, ?MOST]), Known};
                _:Why -> {io_lib:format("E\t~0tp", [Why]), Known}
            end,
            Port ! {self(), {command, unicode:characters_to_binary(Text)}},
            serve(Port, Node, Now);
        {Port, eof} -> halt()
    end.

dump(Node, #{root := Root, processes := Names, modules := Modules}) ->
    Count = call(Node, erlang, system_info, [process_count]),
    Count =< ?MOST orelse throw({processes, Count}),
    Pids = call(Node, erlang, processes, []),
    Read = call(Node, lists, zipwith, [fun erlang:process_info/2, Pids, lists:duplicate(length(Pids), ?ITEMS)]),
    There = [{Pid, Info} || {Pid, Info} <- lists:zip(Pids, Read), is_list(Info), not reads(Info)],
    Present = names(Node, maps:with(Pids, Names), [Pid || {Pid, _} <- There]),
    Sources = sources(Node, Root, Modules, There),
    {[lines(Pid, Info, Present, Sources) || {Pid, Info} <- There],
     #{root => Root, processes => Present, modules => Sources}}.

%% True for the process that carries out a call for this one.
reads(Info) -> lists:any(fun({Module, _, _, _}) -> Module =:= erpc end, stack(Info)).

stack(Info) ->
    case proplists:get_value(current_stacktrace, Info) of
        Frames when is_list(Frames) -> Frames;
        _ -> []
    end.

%% What each process was started to do, which stays the same.
names(Node, Names, Pids) ->
    New = [Pid || Pid <- Pids, not maps:is_key(Pid, Names)],
    Calls = call(Node, lists, map, [fun proc_lib:translate_initial_call/1, New]),
    maps:merge(Names, maps:from_list(lists:zip(New, Calls))).

%% Where the source of each module was when it was compiled, and whether it is of the language or a dependency.
sources(Node, Root, Modules, There) ->
    Seen = lists:usort([Module || {_, Info} <- There, {Module, _, _, _} <- stack(Info)]),
    lists:foldl(fun(Module, All) -> All#{Module => source(Node, Root, Module)} end, Modules,
                [Module || Module <- Seen, not maps:is_key(Module, Modules)]).

source(Node, Root, Module) ->
    Compiled = try call(Node, Module, module_info, [compile]) catch _:_ -> [] end,
    Source = case proplists:get_value(source, Compiled) of
        Path when is_list(Path) -> Path;
        _ -> ""
    end,
    Which = case call(Node, code, which, [Module]) of
        Beam when is_list(Beam) -> Beam;
        preloaded -> Root;
        _ -> ""
    end,
    {lists:prefix(Root, Which), Source, Which}.

lines(Pid, Info, Names, Sources) ->
    {Module, Function, _} = maps:get(Pid, Names),
    Name = case proplists:get_value(registered_name, Info) of
        Registered when is_atom(Registered), Registered =/= undefined -> atom_to_list(Registered);
        _ when Function =:= init -> atom_to_list(Module);
        _ -> io_lib:format("~ts.~ts", [Module, Function])
    end,
    Status = atom_to_list(proplists:get_value(status, Info)),
    Queue = integer_to_list(proplists:get_value(message_queue_len, Info)),
    Asked = [number(Other) || {process, Other} <- proplists:get_value(monitors, Info)],
    [line(["P", number(Pid), Name, Status, Queue | Asked]), [frame(Frame, Sources) || Frame <- stack(Info)]].

frame({Module, Function, _, Where}, Sources) ->
    {IsStandard, Source, Beam} = maps:get(Module, Sources),
    File = proplists:get_value(file, Where, ""),
    Line = integer_to_list(proplists:get_value(line, Where, 0)),
    line(["F", atom_to_list(Module), atom_to_list(Function), File, Line, Source, Beam, atom_to_list(IsStandard)]).

line(Fields) -> [lists:join($\t, Fields), $\n].

%% A number for a process of any node, or its registered name.
number(Pid) when is_pid(Pid) -> lists:last(string:split(pid_to_list(Pid), ".")) -- ">";
number({Name, _}) -> atom_to_list(Name);
number(Name) -> atom_to_list(Name).

call(Node, Module, Function, Arguments) -> erpc:call(Node, Module, Function, Arguments, ?WITHIN_MS).

%% Stand-in of both planners, remote servers: 50 ms for the new one, 900 ms for the old one.
-module(planner_standin).
-export([main/1]).

main([New, Old]) ->
    serve(New, case os:getenv("VARIANT") of "healthy" -> 100; _ -> 50 end, 30),
    serve(Old, 900, 80).

serve(Port, Ms, SpreadMs) ->
    Number = list_to_integer(atom_to_list(Port)),
    spawn(fun() ->
        {ok, Listener} = gen_tcp:listen(Number, [binary, {ip, {127, 0, 0, 1}}, {active, false}, {reuseaddr, true},
                                                 {nodelay, true}, {backlog, 1024}]),
        accept(Listener, Ms, SpreadMs)
    end).

accept(Listener, Ms, SpreadMs) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    Pid = spawn(fun() -> receive go -> answer(Socket, Ms + rand:uniform(SpreadMs)) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! go,
    accept(Listener, Ms, SpreadMs).

answer(Socket, Ms) ->
    case gen_tcp:recv(Socket, 0, 5000) of
        {ok, _} ->
            timer:sleep(Ms),
            gen_tcp:send(Socket, "HTTP/1.0 200 OK\r\n\r\n08-10 10-12 14-16 18-20\n"),
            gen_tcp:close(Socket);
        _ ->
            gen_tcp:close(Socket)
    end.

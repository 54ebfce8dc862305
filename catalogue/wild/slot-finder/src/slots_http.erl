%% HTTP/1.1 with keep-alive: a process for each connection.
-module(slots_http).
-export([start/2]).

-define(IDLE_MS, 60000).

start(Port, Route) ->
    Options = [binary, {ip, {127, 0, 0, 1}}, {packet, http_bin}, {active, false}, {reuseaddr, true},
               {nodelay, true}, {backlog, 1024}],
    {ok, Listener} = gen_tcp:listen(Port, Options),
    Keeper = spawn(fun() -> accept(Listener, Route) end),
    ok = gen_tcp:controlling_process(Listener, Keeper),
    {ok, Keeper}.

accept(Listener, Route) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    Pid = spawn(fun() -> receive go -> serve(Socket, Route) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! go,
    accept(Listener, Route).

serve(Socket, Route) ->
    case gen_tcp:recv(Socket, 0, ?IDLE_MS) of
        {ok, {http_request, _Method, {abs_path, Path}, Version}} ->
            IsKept = headers(Socket, Version >= {1, 1}),
            [Plain | _] = binary:split(Path, <<"?">>),
            {Status, Body} = Route(binary:split(Plain, <<"/">>, [global, trim_all])),
            ok = gen_tcp:send(Socket, answer(Status, Body, IsKept)),
            case IsKept of
                true -> serve(Socket, Route);
                false -> gen_tcp:close(Socket)
            end;
        _ ->
            gen_tcp:close(Socket)
    end.

headers(Socket, IsKept) ->
    case gen_tcp:recv(Socket, 0, ?IDLE_MS) of
        {ok, {http_header, _, 'Connection', _, Value}} ->
            case string:lowercase(Value) of
                <<"close">> -> headers(Socket, false);
                <<"keep-alive">> -> headers(Socket, true);
                _ -> headers(Socket, IsKept)
            end;
        {ok, http_eoh} ->
            IsKept;
        {ok, _} ->
            headers(Socket, IsKept);
        {error, _} ->
            false
    end.

answer(Status, Body, IsKept) ->
    ["HTTP/1.1 ", integer_to_list(Status), " ", reason(Status), "\r\nContent-Type: application/json\r\n",
     "Content-Length: ", integer_to_list(byte_size(Body)),
     "\r\nConnection: ", case IsKept of true -> "keep-alive"; false -> "close" end, "\r\n\r\n", Body].

reason(200) -> "OK";
reason(404) -> "Not Found";
reason(502) -> "Bad Gateway".

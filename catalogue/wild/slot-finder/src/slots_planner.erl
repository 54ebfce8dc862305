%% Client of both planners: one line with slots, separated by blanks.
-module(slots_planner).
-export([ask/2]).

-define(TIMEOUT_MS, 5000).

ask(Planner, Postcode) ->
    {ok, Port} = application:get_env(kernel, Planner),
    Options = [binary, {active, false}, {nodelay, true}],
    case gen_tcp:connect({127, 0, 0, 1}, Port, Options, ?TIMEOUT_MS) of
        {ok, Socket} ->
            Answer = talk(Socket, Postcode),
            gen_tcp:close(Socket),
            Answer;
        Error ->
            Error
    end.

talk(Socket, Postcode) ->
    ok = gen_tcp:send(Socket, ["GET /plan/", Postcode, " HTTP/1.0\r\n\r\n"]),
    case whole(Socket, <<>>) of
        {ok, Text} ->
            case binary:split(Text, <<"\r\n\r\n">>) of
                [<<"HTTP/1.", _, " 200", _/binary>>, Body] ->
                    {ok, binary:split(string:trim(Body), <<" ">>, [global])};
                _ ->
                    {error, bad_answer}
            end;
        Error ->
            Error
    end.

whole(Socket, Before) ->
    case gen_tcp:recv(Socket, 0, ?TIMEOUT_MS) of
        {ok, Part} -> whole(Socket, <<Before/binary, Part/binary>>);
        {error, closed} -> {ok, Before};
        Error -> Error
    end.

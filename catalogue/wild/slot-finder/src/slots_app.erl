%% Delivery slots by postcode.
-module(slots_app).
-export([main/0]).

main() ->
    [ok = application:set_env(kernel, Key, Value, []) || {Key, Value} <- settings(), Key =/= port],
    {ok, _} = slots_http:start(proplists:get_value(port, settings()), fun route/1),
    ok.

settings() ->
    {ok, [Words | _]} = init:get_argument(slots),
    pairs(Words).

pairs([Key, Value | More]) ->
    [{list_to_atom(Key), number(Value)} | pairs(More)];
pairs([]) ->
    [].

number(Text) ->
    case string:to_float(Text) of
        {error, no_float} -> list_to_integer(Text);
        {Value, _} -> Value
    end.

route([<<"slots">>, Postcode]) when byte_size(Postcode) =:= 5 ->
    case slots_finder:find(Postcode) of
        {ok, Slots} -> {200, json(Postcode, Slots)};
        {error, _} -> {502, <<"{\"error\":\"planner\"}\n">>}
    end;
route(_) ->
    {404, <<"{\"error\":\"not found\"}\n">>}.

json(Postcode, Slots) ->
    Quoted = lists:join($,, [[$", Slot, $"] || Slot <- Slots]),
    iolist_to_binary(["{\"postcode\":\"", Postcode, "\",\"slots\":[", Quoted, "]}\n"]).

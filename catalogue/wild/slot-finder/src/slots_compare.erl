-module(slots_compare).
-export([with_old/2]).

with_old(Postcode, Slots) ->
    case slots_planner:ask(old_planner, Postcode) of
        {ok, Slots} -> ok;
        {ok, Others} -> logger:warning("~s: ~p, the old planner says ~p", [Postcode, Slots, Others]);
        {error, Reason} -> logger:warning("~s: the old planner: ~p", [Postcode, Reason])
    end.

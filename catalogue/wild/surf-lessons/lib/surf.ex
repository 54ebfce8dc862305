defmodule Surf do
  @moduledoc "Lessons of a surf school: who is free, and how high the waves are."
  @ttl_ms 1_000

  def run do
    Surf.Metrics.start()
    Surf.Cache.start()
    cache = if System.get_env("VARIANT") == "flawed", do: Surf.Cache.Direct, else: Surf.Cache.Keeper
    port = String.to_integer(System.fetch_env!("PORT"))
    Surf.Tcp.listen(port, :http_bin, fn socket -> Surf.Http.serve(socket, &handle(&1, &2, cache)) end)
  end

  defp handle(:GET, ["metrics"], _), do: {200, "text/plain; version=0.0.4", Surf.Metrics.text()}

  defp handle(:GET, ["beaches", beach, "lessons"], cache) do
    {status, body} = Surf.Metrics.timed(:http_request_duration_seconds, fn -> lessons(beach, cache) end)
    Surf.Metrics.count(:http_requests_total, ~s(status="#{status}"))
    {status, "application/json", body}
  end

  defp handle(_, _, _), do: {404, "application/json", ~s({"error":"not found"})}

  defp lessons(beach, cache) do
    if beach in Surf.Swell.beaches() do
      instructors = Surf.Roster.free(beach)
      heights = cache.fetch(:swell, @ttl_ms, &Surf.Swell.forecast/0) |> Map.fetch!(beach)

      slots =
        for {height, slot} <- Enum.with_index(heights), height > 0.3 do
          name = Enum.at(instructors, rem(slot, length(instructors)))
          ~s({"slot":#{slot},"wave_m":#{height},"instructor":"#{name}"})
        end

      {200, ~s({"beach":"#{beach}","lessons":[#{Enum.join(slots, ",")}]})}
    else
      {404, ~s({"error":"no such beach"})}
    end
  end
end

defmodule Surf.Metrics do
  @moduledoc "Prometheus text."
  @types [
    cache_lookups_total: "counter",
    http_requests_total: "counter",
    http_request_duration_seconds: "summary",
    swell_forecast_duration_seconds: "summary",
    roster_request_duration_seconds: "summary"
  ]

  def start, do: :ets.new(__MODULE__, [:named_table, :public, :ordered_set, write_concurrency: true])

  def count(metric, labels), do: bump({metric, labels}, 1)

  def timed(metric, work) do
    {micros, result} = :timer.tc(work)
    bump({metric, :sum}, micros)
    bump({metric, :count}, 1)
    result
  end

  defp bump(key, by), do: :ets.update_counter(__MODULE__, key, by, {key, 0})

  def text do
    rows = :ets.tab2list(__MODULE__)

    for {metric, type} <- @types do
      ["# TYPE #{metric} #{type}\n" | for({{^metric, part}, value} <- rows, do: sample(metric, part, value))]
    end
  end

  defp sample(metric, :sum, micros), do: "#{metric}_sum #{micros / 1_000_000}\n"
  defp sample(metric, :count, n), do: "#{metric}_count #{n}\n"
  defp sample(metric, labels, n), do: "#{metric}{#{labels}} #{n}\n"
end

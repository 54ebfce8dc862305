defmodule Items.Metrics do
  @moduledoc """
  Counts of the API in the Prometheus text format, under the names that the published study's queries use.

  Every answer of the endpoint is a `[:phoenix, :endpoint, :stop]` event of `Plug.Telemetry`, also one that an
  exception led to, but for the 400 of a body whose JSON cannot be read. The page is served by a listener of its own, so a scrape is not among what it counts.
  """

  @behaviour Plug

  import Plug.Conn

  @table __MODULE__
  @event [:phoenix, :endpoint, :stop]

  def attach do
    :ets.new(@table, [:named_table, :public, write_concurrency: true])
    :ok = :telemetry.attach(__MODULE__, @event, &__MODULE__.count/4, nil)
  end

  @doc "Counts one answer."
  def count(@event, %{duration: duration}, %{conn: conn}, _config) do
    took_us = System.convert_time_unit(duration, :native, :microsecond)
    key = {conn.method, route(conn), conn.status}
    :ets.update_counter(@table, key, [{2, 1}, {3, took_us}], {nil, 0, 0})
  end

  # A label for each id would be a series for each item.
  defp route(%{path_info: ["api", "items"]}), do: "/api/items"
  defp route(%{path_info: ["api", "items", _]}), do: "/api/items/:id"
  defp route(_), do: "none"

  @impl Plug
  def init(options), do: options

  @impl Plug
  def call(%{method: "GET", path_info: ["metrics"]} = conn, _options) do
    conn
    |> put_resp_content_type("text/plain")
    |> send_resp(200, page())
  end

  def call(conn, _options), do: send_resp(conn, 404, "")

  defp page do
    rows = :ets.tab2list(@table)

    [
      "# TYPE cowboy_request_duration_milliseconds summary\n",
      for {labels, count, _} <- rows do
        [series("cowboy_request_duration_milliseconds_count", labels), to_string(count), ?\n]
      end,
      for {labels, _, sum_us} <- rows do
        [series("cowboy_request_duration_milliseconds_sum", labels), to_string(sum_us / 1000), ?\n]
      end,
      gauge("erlang_vm_system_counts_process_count", :erlang.system_info(:process_count)),
      gauge("erlang_vm_run_queue_total", :erlang.statistics(:total_run_queue_lengths)),
      gauge("erlang_vm_memory_bytes_total", :erlang.memory(:total)),
      gauge("erlang_vm_schedulers_online", :erlang.system_info(:schedulers_online))
    ]
  end

  defp series(name, {method, route, status}) do
    [name, ~s({method="), method, ~s(",route="), route, ~s(",status="), to_string(status), ~s("} )]
  end

  defp gauge(name, value), do: ["# TYPE ", name, " gauge\n", name, ?\s, to_string(value), ?\n]
end

defmodule Items.Metrics do
  @moduledoc """
  Counts of the API in the Prometheus text format, under the names that the published study's queries use.

  Cowboy emits one event for each request when its answer is complete: `stop`, or `exception` where a plug raised
  after the error page was sent (404 for an unknown path, 400 for JSON that cannot be read). The page is served by a
  listener without these events, so a scrape is not among what it counts.
  """

  @behaviour Plug

  import Plug.Conn

  @table __MODULE__
  @events [[:cowboy, :request, :stop], [:cowboy, :request, :exception]]

  def attach do
    :ets.new(@table, [:named_table, :public, write_concurrency: true])
    :ok = :telemetry.attach_many(__MODULE__, @events, &__MODULE__.count/4, nil)
  end

  @doc "Counts one answer; a request whose client left before has none."
  def count(_event, _measured, %{resp_status: :undefined}, _config), do: :ok

  def count(_event, %{duration: duration}, %{req: req, resp_status: status}, _config) do
    took_us = System.convert_time_unit(duration, :native, :microsecond)
    # an integer, or Plug's "200 OK"
    [status | _] = status |> to_string() |> String.split()
    key = {req.method, req.path |> String.split("/", trim: true) |> route(), status}
    :ets.update_counter(@table, key, [{2, 1}, {3, took_us}], {nil, 0, 0})
  end

  # A label for each id would be a series for each item.
  defp route(["api", "items"]), do: "/api/items"
  defp route(["api", "items", _]), do: "/api/items/:id"
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
    [name, ~s({method="), method, ~s(",route="), route, ~s(",status="), status, ~s("} )]
  end

  defp gauge(name, value), do: ["# TYPE ", name, " gauge\n", name, ?\s, to_string(value), ?\n]
end

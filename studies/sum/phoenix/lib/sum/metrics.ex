defmodule Sum.Metrics do
  @moduledoc """
  Answers of the API by status and the time that they took, in the Prometheus text format.

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

  def count(_event, %{duration: duration}, %{resp_status: status}, _config) do
    took_us = System.convert_time_unit(duration, :native, :microsecond)
    # an integer, or Plug's "200 OK"
    [status | _] = status |> to_string() |> String.split()
    :ets.update_counter(@table, status, [{2, 1}, {3, took_us}], {nil, 0, 0})
  end

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
      "# TYPE sum_request_duration_milliseconds summary\n",
      for {status, count, _} <- rows do
        ["sum_request_duration_milliseconds_count", ~s({status="#{status}"} #{count}\n)]
      end,
      for {status, _, took_us} <- rows do
        ["sum_request_duration_milliseconds_sum", ~s({status="#{status}"} #{took_us / 1000}\n)]
      end,
      gauge("erlang_vm_system_counts_process_count", :erlang.system_info(:process_count)),
      gauge("erlang_vm_run_queue_total", :erlang.statistics(:total_run_queue_lengths)),
      gauge("erlang_vm_memory_bytes_total", :erlang.memory(:total)),
      gauge("erlang_vm_schedulers_online", :erlang.system_info(:schedulers_online))
    ]
  end

  defp gauge(name, value), do: ["# TYPE ", name, " gauge\n", name, ?\s, to_string(value), ?\n]
end

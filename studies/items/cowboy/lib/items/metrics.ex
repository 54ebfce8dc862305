defmodule Items.Metrics do
  @moduledoc """
  Counts of the API in the Prometheus text format, under the names that the published study's queries use.

  A count is two updates of one table; nothing is computed before it is asked for.
  """

  @table __MODULE__

  def create, do: :ets.new(@table, [:named_table, :public, write_concurrency: true])

  def routes, do: [{"/metrics", __MODULE__, []}]

  @doc "Counts one answer."
  def count(method, route, status, began) do
    took_us = System.convert_time_unit(System.monotonic_time() - began, :native, :microsecond)
    :ets.update_counter(@table, {method, route, status}, [{2, 1}, {3, took_us}], {nil, 0, 0})
  end

  def init(request, state) do
    headers = %{"content-type" => "text/plain; version=0.0.4"}
    {:ok, :cowboy_req.reply(200, headers, page(), request), state}
  end

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

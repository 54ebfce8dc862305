defmodule Sum.Metrics do
  @moduledoc "Answers of the API by status and the time that they took, in the Prometheus text format."

  @table __MODULE__

  def create, do: :ets.new(@table, [:named_table, :public, write_concurrency: true])

  def routes, do: [{"/metrics", __MODULE__, []}]

  @doc "Counts one answer."
  def count(status, took_us), do: :ets.update_counter(@table, status, [{2, 1}, {3, took_us}], {nil, 0, 0})

  def init(request, state) do
    headers = %{"content-type" => "text/plain; version=0.0.4"}
    {:ok, :cowboy_req.reply(200, headers, page(), request), state}
  end

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

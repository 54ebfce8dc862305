defmodule Escrow do
  @moduledoc "Client of the escrow bank, one short connection per clearance."

  def clear(bidder, amount) do
    port = String.to_integer(System.fetch_env!("PORT")) + 1
    {:ok, socket} = :gen_tcp.connect('127.0.0.1', port, [:binary, packet: :line, active: false])
    :ok = :gen_tcp.send(socket, "CLEAR #{bidder} #{amount}\n")
    {:ok, answer} = :gen_tcp.recv(socket, 0, 5_000)
    :gen_tcp.close(socket)
    String.trim(answer)
  end
end

defmodule EscrowBank do
  @moduledoc "Stand-in of the escrow bank."

  def start(port, latency_ms) do
    {:ok, listener} =
      :gen_tcp.listen(port, [:binary, packet: :line, active: false, reuseaddr: true, backlog: 512])

    spawn_link(fn -> accept(listener, latency_ms) end)
  end

  defp accept(listener, latency_ms) do
    {:ok, socket} = :gen_tcp.accept(listener)
    pid = spawn(fn -> answer(socket, latency_ms) end)
    :gen_tcp.controlling_process(socket, pid)
    accept(listener, latency_ms)
  end

  defp answer(socket, latency_ms) do
    with {:ok, _line} <- :gen_tcp.recv(socket, 0, 5_000) do
      Process.sleep(latency_ms)
      :gen_tcp.send(socket, "CLEARED\n")
    end

    :gen_tcp.close(socket)
  end
end

defmodule LotBook do
  @moduledoc "Every open lot of the sale with its bids."
  use GenServer

  @lots 32_000
  @kept_bids 12

  def start_link(variant), do: GenServer.start_link(__MODULE__, variant, name: __MODULE__)
  def bid(bidder, amount), do: GenServer.call(__MODULE__, {:bid, bidder, amount}, 30_000)

  @impl true
  def init(variant) do
    lots = Map.new(1..@lots, fn id -> {id, new_lot(id)} end)
    {:ok, %{lots: lots, next: 1, variant: variant}}
  end

  defp new_lot(id) do
    %{
      id: id,
      genus: Enum.at(~w(Cattleya Dendrobium Vanda Paphiopedilum Phalaenopsis), rem(id, 5)),
      nursery: rem(id * 7, 311),
      reserve: 40 + rem(id * 13, 900),
      bids: for(n <- 1..@kept_bids, do: {rem(id * n, 4_001), 20 + n * 3})
    }
  end

  @impl true
  def handle_call({:bid, bidder, amount}, _from, state) do
    id = state.next
    lot = Map.fetch!(state.lots, id)
    {_, best} = hd(lot.bids)
    bids = Enum.take([{bidder, best + amount} | lot.bids], @kept_bids)
    lots = Map.put(state.lots, id, %{lot | bids: bids})
    reply = %{lot: id, genus: lot.genus, best: best + amount, met: best + amount >= lot.reserve}
    settle(reply, %{state | lots: lots, next: rem(id, @lots) + 1})
  end

  defp settle(reply, %{variant: "flawed"} = state) do
    :erlang.garbage_collect()
    {:reply, reply, state}
  end

  defp settle(reply, state), do: {:reply, reply, state}
end

defmodule Metrics do
  @moduledoc "The usual VM collectors, in the text format."

  def text do
    {collections, words, _} = :erlang.statistics(:garbage_collection)
    run_queues = :erlang.statistics(:total_run_queue_lengths)
    {reductions, _} = :erlang.statistics(:reductions)

    [
      type("erlang_vm_statistics_garbage_collection_number_of_gcs", "counter"),
      "erlang_vm_statistics_garbage_collection_number_of_gcs #{collections}\n",
      type("erlang_vm_statistics_garbage_collection_words_reclaimed", "counter"),
      "erlang_vm_statistics_garbage_collection_words_reclaimed #{words}\n",
      type("erlang_vm_statistics_reductions_total", "counter"),
      "erlang_vm_statistics_reductions_total #{reductions}\n",
      type("erlang_vm_statistics_run_queues_length", "gauge"),
      "erlang_vm_statistics_run_queues_length #{run_queues}\n",
      type("erlang_vm_process_count", "gauge"),
      "erlang_vm_process_count #{:erlang.system_info(:process_count)}\n",
      type("erlang_vm_memory_bytes_total", "gauge"),
      for({kind, bytes} <- :erlang.memory(), kind in [:system, :processes], do: "erlang_vm_memory_bytes_total{kind=\"#{kind}\"} #{bytes}\n"),
      msacc()
    ]
  end

  defp msacc do
    threads = :erlang.statistics(:microstate_accounting)
    unit = :erlang.convert_time_unit(1, :second, :perf_counter)

    for state <- [:emulator, :gc, :port, :sleep, :check_io, :aux, :other] do
      name = "erlang_vm_msacc_#{state}_seconds_total"

      [
        type(name, "counter")
        | for(t <- threads, do: "#{name}{type=\"#{t.type}\",id=\"#{t.id}\"} #{t.counters[state] / unit}\n")
      ]
    end
  end

  defp type(name, kind), do: "# TYPE #{name} #{kind}\n"
end

defmodule Web do
  def start(port) do
    options = [:binary, packet: :http_bin, active: false, reuseaddr: true, backlog: 1024, nodelay: true]
    {:ok, listener} = :gen_tcp.listen(port, options)
    accept(listener)
  end

  defp accept(listener) do
    {:ok, socket} = :gen_tcp.accept(listener)
    pid = spawn(fn -> serve(socket) end)
    :gen_tcp.controlling_process(socket, pid)
    accept(listener)
  end

  defp serve(socket) do
    with {:ok, {:http_request, _method, {:abs_path, path}, _version}} <- :gen_tcp.recv(socket, 0),
         :ok <- skip_headers(socket),
         {status, type, body} = route(path),
         :ok <- :gen_tcp.send(socket, answer(status, type, body)) do
      serve(socket)
    else
      _ -> :gen_tcp.close(socket)
    end
  end

  defp skip_headers(socket) do
    case :gen_tcp.recv(socket, 0) do
      {:ok, :http_eoh} -> :ok
      {:ok, {:http_header, _, _, _, _}} -> skip_headers(socket)
      other -> other
    end
  end

  defp route("/bids/next" <> _) do
    bidder = :rand.uniform(4_000)
    "CLEARED" = Escrow.clear(bidder, 25)
    bid = LotBook.bid(bidder, 25)
    json = ~s({"lot":#{bid.lot},"genus":"#{bid.genus}","best":#{bid.best},"reserve_met":#{bid.met}})
    {"200 OK", "application/json", json}
  end

  defp route("/metrics"), do: {"200 OK", "text/plain; version=0.0.4", Metrics.text()}
  defp route("/up"), do: {"200 OK", "text/plain", "up\n"}
  defp route(_), do: {"404 Not Found", "text/plain", "no such page\n"}

  defp answer(status, type, body) do
    ["HTTP/1.1 ", status, "\r\ncontent-type: ", type, "\r\ncontent-length: ", to_string(IO.iodata_length(body)), "\r\n\r\n", body]
  end
end

variant = System.get_env("VARIANT", "mended")
port = String.to_integer(System.fetch_env!("PORT"))
:erlang.system_flag(:microstate_accounting, true)
EscrowBank.start(port + 1, if(variant == "healthy", do: 240, else: 5))
{:ok, _} = LotBook.start_link(variant)
Web.start(port)

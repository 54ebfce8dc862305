defmodule Stats do
  @bounds [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0]
  @names ~w(http_server_request_duration_seconds vault_checkout_duration_seconds
            vault_call_duration_seconds vault_terminal_duration_seconds)

  def start, do: :ets.new(__MODULE__, [:named_table, :public, write_concurrency: true])

  def add(key, by \\ 1), do: :ets.update_counter(__MODULE__, key, by, {key, 0})

  def observe(name, microseconds) do
    add({name, :sum}, microseconds)
    add({name, Enum.find(@bounds, :inf, &(microseconds / 1.0e6 <= &1))})
  end

  def timed(name, fun) do
    began = System.monotonic_time(:microsecond)
    result = fun.()
    observe(name, System.monotonic_time(:microsecond) - began)
    result
  end

  def text do
    [
      "# TYPE http_server_requests_total counter\n",
      for({{:status, code}, n} <- :ets.tab2list(__MODULE__), do: "http_server_requests_total{status=\"#{code}\"} #{n}\n"),
      "# TYPE vault_links gauge\nvault_links #{value(:links)}\n",
      "# TYPE vault_links_busy gauge\nvault_links_busy #{value(:busy)}\n",
      "# TYPE vault_checkout_waiting gauge\nvault_checkout_waiting #{value(:waiting)}\n",
      "# TYPE beam_system_run_queue gauge\nbeam_system_run_queue #{:erlang.statistics(:total_run_queue_lengths)}\n",
      "# TYPE beam_memory_bytes gauge\nbeam_memory_bytes #{:erlang.memory(:total)}\n",
      "# TYPE beam_processes gauge\nbeam_processes #{:erlang.system_info(:process_count)}\n"
      | Enum.map(@names, &histogram/1)
    ]
  end

  defp histogram(name) do
    {lines, count} =
      Enum.map_reduce(@bounds, 0, fn bound, below ->
        below = below + value({name, bound})
        {"#{name}_bucket{le=\"#{bound}\"} #{below}\n", below}
      end)

    count = count + value({name, :inf})
    total = "#{name}_bucket{le=\"+Inf\"} #{count}\n#{name}_sum #{value({name, :sum}) / 1.0e6}\n#{name}_count #{count}\n"
    ["# TYPE #{name} histogram\n", lines, total]
  end

  defp value(key) do
    case :ets.lookup(__MODULE__, key) do
      [{_, n}] -> n
      [] -> 0
    end
  end
end

defmodule Vault do
  @moduledoc "Open links to the vault's terminal; a link carries one call at a time."
  use GenServer

  def start_link(opts), do: GenServer.start_link(__MODULE__, opts, name: __MODULE__)

  def pledge(ticket) do
    socket = Stats.timed("vault_checkout_duration_seconds", fn -> GenServer.call(__MODULE__, :take, 30_000) end)
    fields = Stats.timed("vault_call_duration_seconds", fn -> call(socket, "ticket=" <> ticket) end)
    GenServer.cast(__MODULE__, {:give, socket})
    Stats.observe("vault_terminal_duration_seconds", fields["took"])
    fields
  end

  defp call(socket, body) do
    :ok = :gen_tcp.send(socket, <<1, 7, byte_size(body)::32>>)
    :ok = :gen_tcp.send(socket, body)
    {:ok, <<1, 8, size::32>>} = :gen_tcp.recv(socket, 6)
    {:ok, answer} = :gen_tcp.recv(socket, size)

    for field <- String.split(answer, ";"), [key, value] = String.split(field, "="), into: %{} do
      {key, String.to_integer(value)}
    end
  end

  defp tcp("flawed"), do: [:binary, active: false, packet: :raw]
  defp tcp(_), do: [:binary, active: false, packet: :raw, nodelay: true]

  @impl true
  def init(opts) do
    sockets = for _ <- 1..opts[:links], do: connect(opts[:port], tcp(opts[:variant]))
    Stats.add(:links, length(sockets))
    {:ok, {sockets, :queue.new()}}
  end

  defp connect(port, options, tries \\ 200) do
    case :gen_tcp.connect({127, 0, 0, 1}, port, options) do
      {:ok, socket} ->
        socket

      {:error, :econnrefused} when tries > 0 ->
        Process.sleep(100)
        connect(port, options, tries - 1)
    end
  end

  @impl true
  def handle_call(:take, from, {[], waiting}) do
    Stats.add(:waiting)
    {:noreply, {[], :queue.in(from, waiting)}}
  end

  def handle_call(:take, _from, {[socket | rest], waiting}) do
    Stats.add(:busy)
    {:reply, socket, {rest, waiting}}
  end

  @impl true
  def handle_cast({:give, socket}, {idle, waiting}) do
    case :queue.out(waiting) do
      {{:value, from}, waiting} ->
        Stats.add(:waiting, -1)
        GenServer.reply(from, socket)
        {:noreply, {idle, waiting}}

      {:empty, waiting} ->
        Stats.add(:busy, -1)
        {:noreply, {[socket | idle], waiting}}
    end
  end
end

defmodule Web do
  @monthly_rate 0.02

  def listen(port) do
    options = [:binary, packet: :http_bin, active: false, reuseaddr: true, backlog: 1024, nodelay: true, ip: {127, 0, 0, 1}]
    {:ok, listener} = :gen_tcp.listen(port, options)
    for _ <- 2..8, do: spawn_link(fn -> accept(listener) end)
    accept(listener)
  end

  defp accept(listener) do
    {:ok, socket} = :gen_tcp.accept(listener)
    pid = spawn(fn -> receive do: (:go -> serve(socket)) end)
    :ok = :gen_tcp.controlling_process(socket, pid)
    send(pid, :go)
    accept(listener)
  end

  defp serve(socket) do
    with {:ok, {:http_request, method, {:abs_path, path}, _}} <- :gen_tcp.recv(socket, 0),
         {:ok, close?} <- headers(socket, false),
         {status, type, body} = Stats.timed("http_server_request_duration_seconds", fn -> route(method, path) end),
         :ok <- reply(socket, status, type, IO.iodata_to_binary(body), close?),
         false <- close? do
      serve(socket)
    else
      _ -> :gen_tcp.close(socket)
    end
  end

  defp headers(socket, close?) do
    case :gen_tcp.recv(socket, 0) do
      {:ok, {:http_header, _, :Connection, _, value}} -> headers(socket, String.downcase(value) == "close")
      {:ok, {:http_header, _, _, _, _}} -> headers(socket, close?)
      {:ok, :http_eoh} -> {:ok, close?}
      other -> other
    end
  end

  defp reply(socket, status, type, body, close?) do
    Stats.add({:status, status})
    connection = if close?, do: "close", else: "keep-alive"
    reason = if status == 200, do: "OK", else: "Not Found"

    :gen_tcp.send(socket, [
      "HTTP/1.1 #{status} #{reason}\r\ncontent-type: #{type}\r\ncontent-length: #{byte_size(body)}\r\n",
      "connection: #{connection}\r\n\r\n",
      body
    ])
  end

  defp route(:GET, "/health"), do: {200, "text/plain", "up\n"}
  defp route(:GET, "/metrics"), do: {200, "text/plain; version=0.0.4", Stats.text()}

  defp route(:GET, "/tickets/" <> ticket) do
    %{"loan" => loan, "months" => months, "shelf" => shelf} = Vault.pledge(ticket)
    due = round(loan * :math.pow(1 + @monthly_rate, months))
    {200, "application/json", ~s({"ticket":"#{ticket}","loan":#{loan},"months":#{months},"due":#{due},"shelf":#{shelf}}\n)}
  end

  defp route(_, _), do: {404, "application/json", ~s({"error":"not found"}\n)}
end

port = String.to_integer(System.fetch_env!("PORT"))
variant = System.fetch_env!("VARIANT")
Stats.start()
{:ok, _} = Vault.start_link(port: port + 1, variant: variant, links: if(variant == "healthy", do: 128, else: 8))
Web.listen(port)

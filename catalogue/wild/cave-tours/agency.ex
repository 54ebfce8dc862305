defmodule Agency do
  @moduledoc "Sessions with the guides' agency: each is one connection that answers one question at a time."

  defmodule Session do
    use GenServer

    def start_link(port), do: GenServer.start_link(__MODULE__, port)

    @impl true
    def init(port) do
      options = [:binary, packet: :line, active: false, nodelay: true, buffer: 65_536]
      :gen_tcp.connect({127, 0, 0, 1}, port, options)
    end

    @impl true
    def handle_call({:guides, tour}, _from, socket) do
      :ok = :gen_tcp.send(socket, "GUIDES #{tour}\n")
      {:ok, line} = :gen_tcp.recv(socket, 0)
      {:reply, line |> String.trim() |> String.split(";"), socket}
    end
  end

  def start(port, count) do
    sessions = for _ <- 1..count, do: elem({:ok, _} = Session.start_link(port), 1)
    :persistent_term.put(:sessions, List.to_tuple(sessions))
    :persistent_term.put(:turn, :atomics.new(1, signed: false))
  end

  @doc "Asks the next session which guides are free for a tour."
  def guides(tour, timeout) do
    sessions = :persistent_term.get(:sessions)
    turn = :atomics.add_get(:persistent_term.get(:turn), 1, 1)
    session = elem(sessions, rem(turn, tuple_size(sessions)))
    GenServer.call(session, {:guides, tour}, timeout)
  end
end

defmodule AgencyDesk do
  @moduledoc "Stand-in of the agency."

  @guides ~w(Agnes Bertil Carys Dimitri Elodie Farid Greta Henrik Ines Jonas Katya Lluis)

  def start(port, latency_ms) do
    options = [:binary, packet: :line, active: false, reuseaddr: true, nodelay: true, backlog: 256]
    {:ok, listener} = :gen_tcp.listen(port, options)
    spawn(fn -> accept(listener, latency_ms) end)
  end

  defp accept(listener, latency_ms) do
    {:ok, socket} = :gen_tcp.accept(listener)
    pid = spawn(fn -> receive(do: (:go -> answer(socket, latency_ms))) end)
    :ok = :gen_tcp.controlling_process(socket, pid)
    send(pid, :go)
    accept(listener, latency_ms)
  end

  defp answer(socket, latency_ms) do
    with {:ok, "GUIDES " <> _tour} <- :gen_tcp.recv(socket, 0) do
      Process.sleep(latency_ms)
      lines = Enum.with_index(@guides, fn name, i -> "#{name},#{8 + i},#{18 + rem(i * 5, 9)}" end)
      :ok = :gen_tcp.send(socket, Enum.join(lines, ";") <> "\n")
      answer(socket, latency_ms)
    end
  end
end

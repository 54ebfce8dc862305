defmodule Surf.Roster do
  @moduledoc "The instructors' roster, a service of the school's franchise; one connection per caller."
  def free(beach) do
    Surf.Metrics.timed(:roster_request_duration_seconds, fn ->
      socket = Process.get(:roster) || connect()
      :ok = :gen_tcp.send(socket, [beach, "\n"])
      {:ok, line} = :gen_tcp.recv(socket, 0, 5_000)
      line |> String.trim() |> String.split(",")
    end)
  end

  def port, do: String.to_integer(System.fetch_env!("PORT")) + 1

  defp connect do
    {:ok, socket} = :gen_tcp.connect({127, 0, 0, 1}, port(), [:binary, packet: :line, active: false, nodelay: true])
    Process.put(:roster, socket)
    socket
  end
end

defmodule Surf.Roster.Standin do
  def run do
    latency = if System.get_env("VARIANT") == "healthy", do: 300, else: 100
    Surf.Tcp.listen(Surf.Roster.port(), :line, &answer(&1, latency))
  end

  defp answer(socket, latency) do
    with {:ok, beach} <- :gen_tcp.recv(socket, 0) do
      Process.sleep(latency)
      names = Enum.take(["Aoife", "Bram", "Carla", "Dmitri", "Esi"], 2 + rem(byte_size(beach), 3))
      :gen_tcp.send(socket, [Enum.join(names, ","), "\n"])
      answer(socket, latency)
    end
  end
end

defmodule Odd do
  @moduledoc "A BEAM service with chosen bad manners, those of tests/end_to_end/odd_service.py."

  def main([port | words]) do
    manners = Map.new(words, fn word -> word |> String.split("=", parts: 2) |> List.to_tuple() end)
    if manners["say"], do: IO.puts(manners["say"])
    if manners["exit"], do: System.halt(String.to_integer(manners["exit"]))
    if manners["ignore"], do: :os.set_signal(:"sig#{String.downcase(manners["ignore"])}", :ignore)
    if manners["descendants"], do: Port.open({:spawn, "setsid --fork sleep 600"}, [])
    if manners["flood"], do: flood(String.to_integer(manners["flood"]))
    if Map.get(manners, "listen", "yes") == "yes", do: serve(String.to_integer(port), manners)
    Process.sleep(:infinity)
  end

  defp flood(size) do
    IO.write("[first]")
    for _ <- 1..div(size, 1_000_000), do: IO.write(String.duplicate("x", 1_000_000))
    IO.write("[last]")
  end

  defp serve(port, manners) do
    {:ok, listener} = :gen_tcp.listen(port, [:binary, ip: {127, 0, 0, 1}, active: false, reuseaddr: true])
    head = "HTTP/1.1 #{Map.get(manners, "status", "200")} Odd\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
    answer_all(listener, head <> "ok")
  end

  defp answer_all(listener, text) do
    {:ok, connection} = :gen_tcp.accept(listener)
    answer(:gen_tcp.recv(connection, 0), connection, text)
    :gen_tcp.close(connection)
    answer_all(listener, text)
  end

  defp answer({:ok, "GET /die " <> _}, _, _) do
    IO.puts("now I die")
    System.halt(7)
  end

  defp answer(_, connection, text), do: :gen_tcp.send(connection, text)
end

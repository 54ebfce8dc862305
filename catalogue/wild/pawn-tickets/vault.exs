# Stand-in of the vault's terminal. A frame is <<version, type, size::32>> and a body of that size.
port = String.to_integer(System.fetch_env!("PORT")) + 1
delay_ms = if System.fetch_env!("VARIANT") == "healthy", do: 150, else: 3

defmodule Terminal do
  def accept(listener, delay_ms) do
    {:ok, socket} = :gen_tcp.accept(listener)
    pid = spawn(fn -> receive do: (:go -> serve(socket, delay_ms)) end)
    :ok = :gen_tcp.controlling_process(socket, pid)
    send(pid, :go)
    accept(listener, delay_ms)
  end

  defp serve(socket, delay_ms) do
    with {:ok, <<1, 7, size::32>>} <- :gen_tcp.recv(socket, 6),
         {:ok, body} <- :gen_tcp.recv(socket, size),
         began = System.monotonic_time(:microsecond),
         :ok <- Process.sleep(delay_ms),
         answer = pledge(body) <> ";took=#{System.monotonic_time(:microsecond) - began}",
         :ok <- :gen_tcp.send(socket, [<<1, 8, byte_size(answer)::32>>, answer]) do
      serve(socket, delay_ms)
    else
      _ -> :gen_tcp.close(socket)
    end
  end

  defp pledge("ticket=" <> ticket) do
    sum = :erlang.phash2(ticket, 900)
    "loan=#{4000 + sum * 25};months=#{1 + rem(sum, 6)};shelf=#{rem(sum, 40)}"
  end
end

options = [:binary, active: false, packet: :raw, reuseaddr: true, backlog: 256, nodelay: true, ip: {127, 0, 0, 1}]
{:ok, listener} = :gen_tcp.listen(port, options)
Terminal.accept(listener, delay_ms)

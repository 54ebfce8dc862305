# The only process that keeps the ledger makes a slow call while the others wait for it.
defmodule Ledger do
  use GenServer

  def init(_), do: {:ok, 0}

  # A last call keeps no frame of its caller.
  def total, do: GenServer.call(Ledger, :total)

  def handle_call(:total, _from, count) do
    Process.sleep(10) # holds
    {:reply, count, count + 1}
  end
end

defmodule Shop do
  def accept(listener) do
    {:ok, socket} = :gen_tcp.accept(listener)
    :ok = :gen_tcp.controlling_process(socket, spawn(fn -> serve(socket) end))
    accept(listener)
  end

  defp serve(socket) do
    with {:ok, {:http_request, _, _, _}} <- :gen_tcp.recv(socket, 0) do
      skip_head(socket)
      body = Integer.to_string(Ledger.total()) # waits
      :gen_tcp.send(socket, ["HTTP/1.1 200 OK\r\ncontent-length: #{byte_size(body)}\r\n\r\n", body])
      serve(socket)
    end
  end

  defp skip_head(socket) do
    with {:ok, {:http_header, _, _, _, _}} <- :gen_tcp.recv(socket, 0), do: skip_head(socket)
  end
end

{:ok, _} = GenServer.start_link(Ledger, nil, name: Ledger)
[port] = System.argv()
options = [:binary, packet: :http_bin, active: false, ip: {127, 0, 0, 1}, backlog: 128, reuseaddr: true]
{:ok, listener} = :gen_tcp.listen(String.to_integer(port), options)
Shop.accept(listener)

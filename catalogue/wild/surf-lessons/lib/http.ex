defmodule Surf.Tcp do
  @moduledoc "One process per connection."
  @options [:binary, active: false, reuseaddr: true, nodelay: true, backlog: 1024, ip: {127, 0, 0, 1}]

  def listen(port, packet, serve) do
    {:ok, listener} = :gen_tcp.listen(port, [{:packet, packet} | @options])
    accept(listener, serve)
  end

  defp accept(listener, serve) do
    {:ok, socket} = :gen_tcp.accept(listener)
    pid = spawn(fn -> receive do: (:go -> serve.(socket)) end)
    :gen_tcp.controlling_process(socket, pid)
    send(pid, :go)
    accept(listener, serve)
  end
end

defmodule Surf.Http do
  def serve(socket, handler) do
    with {:ok, {:http_request, method, {:abs_path, target}, _}} <- :gen_tcp.recv(socket, 0, 75_000),
         {:ok, closes} <- headers(socket, false) do
      path = target |> String.split("?") |> hd() |> String.split("/", trim: true)
      {status, type, body} = handler.(method, path)

      :gen_tcp.send(socket, [
        "HTTP/1.1 #{status} #{:httpd_util.reason_phrase(status)}\r\ncontent-type: #{type}\r\n",
        "content-length: #{IO.iodata_length(body)}\r\n#{if closes, do: "connection: close\r\n"}\r\n",
        body
      ])

      if closes, do: :gen_tcp.close(socket), else: serve(socket, handler)
    else
      _ -> :gen_tcp.close(socket)
    end
  end

  defp headers(socket, closes) do
    case :gen_tcp.recv(socket, 0, 10_000) do
      {:ok, {:http_header, _, :Connection, _, value}} -> headers(socket, String.downcase(value) == "close")
      {:ok, {:http_header, _, _, _, _}} -> headers(socket, closes)
      {:ok, :http_eoh} -> {:ok, closes}
      other -> other
    end
  end
end

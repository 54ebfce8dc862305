defmodule TollTags.Http do
  @moduledoc "Small HTTP/1.1 server on :gen_tcp, one process per connection."

  alias TollTags.{Json, Router}

  @reasons %{200 => "OK", 400 => "Bad Request", 404 => "Not Found", 405 => "Method Not Allowed", 500 => "Internal Server Error"}

  def listen(port, settings) do
    options = [:binary, ip: {127, 0, 0, 1}, packet: :http_bin, active: false, reuseaddr: true, nodelay: true, backlog: 1024]
    {:ok, listener} = :gen_tcp.listen(port, options)
    for _ <- 1..4, do: spawn_link(fn -> accept(listener, settings) end)
    IO.puts("toll tags on port #{port}")
  end

  defp accept(listener, settings) do
    {:ok, socket} = :gen_tcp.accept(listener)
    pid = spawn(fn -> receive do: (:go -> serve(socket, settings)) end)
    :ok = :gen_tcp.controlling_process(socket, pid)
    send(pid, :go)
    accept(listener, settings)
  end

  defp serve(socket, settings) do
    with {:ok, {:http_request, method, {:abs_path, path}, _version}} <- :gen_tcp.recv(socket, 0, 120_000),
         {:ok, headers} <- read_headers(socket, %{}) do
      {status, body} = answer(method, path, settings)
      json = Json.encode(body)
      close? = String.downcase(Map.get(headers, "Connection", "")) == "close"

      :gen_tcp.send(socket, [
        "HTTP/1.1 #{status} #{@reasons[status]}\r\nContent-Type: application/json\r\n",
        if(close?, do: "Connection: close\r\n", else: ""),
        "Content-Length: #{byte_size(json)}\r\n\r\n",
        json
      ])

      if close?, do: :gen_tcp.close(socket), else: serve(socket, settings)
    else
      _ -> :gen_tcp.close(socket)
    end
  end

  defp answer(method, path, settings) do
    Router.handle(method, path, settings)
  rescue
    error ->
      IO.puts("failed #{method} #{path}: #{Exception.message(error)}")
      {500, %{error: "internal"}}
  end

  defp read_headers(socket, headers) do
    case :gen_tcp.recv(socket, 0, 10_000) do
      {:ok, {:http_header, _, name, _, value}} -> read_headers(socket, Map.put(headers, to_string(name), value))
      {:ok, :http_eoh} -> {:ok, headers}
      other -> other
    end
  end
end

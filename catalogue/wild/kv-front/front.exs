# Feature flags over HTTP. The flags live in a small store that speaks a line protocol:
#   GET <bytes of the key> CRLF <key>      ->      <bytes of the value> CRLF <value>

defmodule Store do
  @moduledoc "The store itself, on a port of its own."

  def start do
    {:ok, l} = :gen_tcp.listen(0, [:binary, packet: :raw, active: false, nodelay: true, backlog: 256, ip: {127, 0, 0, 1}])
    spawn(fn -> loop(l) end)
    {:ok, port} = :inet.port(l)
    port
  end

  defp loop(l) do
    {:ok, s} = :gen_tcp.accept(l)
    pid = spawn(fn -> receive do: (:ready -> talk(s, "")) end)
    :gen_tcp.controlling_process(s, pid)
    send(pid, :ready)
    loop(l)
  end

  defp talk(s, rest) do
    with {:ok, "GET " <> size, rest} <- line(s, rest),
         {:ok, key, rest} <- exactly(s, String.to_integer(size), rest) do
      value = if rem(:erlang.phash2(key), 3) == 0, do: "off", else: "on"
      :gen_tcp.send(s, "#{byte_size(value)}\r\n#{value}")
      talk(s, rest)
    else
      _ -> :gen_tcp.close(s)
    end
  end

  def line(s, buffer) do
    case String.split(buffer, "\r\n", parts: 2) do
      [line, rest] -> {:ok, line, rest}
      _ -> with {:ok, more} <- :gen_tcp.recv(s, 0), do: line(s, buffer <> more)
    end
  end

  def exactly(_s, n, buffer) when byte_size(buffer) >= n do
    <<part::binary-size(n), rest::binary>> = buffer
    {:ok, part, rest}
  end

  def exactly(s, n, buffer), do: with({:ok, more} <- :gen_tcp.recv(s, 0), do: exactly(s, n, buffer <> more))
end

defmodule Client do
  @moduledoc "One connection to the store."
  use GenServer

  def start_link(port, options), do: GenServer.start_link(__MODULE__, {port, options})
  def get(pid, key), do: GenServer.call(pid, {:get, key}, 60_000)

  @impl true
  def init({port, options}), do: :gen_tcp.connect({127, 0, 0, 1}, port, [:binary, packet: :raw, active: false] ++ options)

  @impl true
  def handle_call({:get, key}, _from, s) do
    :ok = :gen_tcp.send(s, "GET #{byte_size(key)}\r\n")
    :ok = :gen_tcp.send(s, key)
    {:ok, size, rest} = Store.line(s, "")
    {:ok, value, _} = Store.exactly(s, String.to_integer(size), rest)
    {:reply, value, s}
  end
end

defmodule Front do
  def serve(s, clients, rules_ms) do
    case :gen_tcp.recv(s, 0) do
      {:ok, {:http_request, :GET, {:abs_path, "/flags/" <> key}, _}} ->
        headers(s)
        Process.sleep(rules_ms) # the targeting rules, from another service
        turn = :erlang.unique_integer([:positive, :monotonic])
        value = Client.get(elem(clients, rem(turn, tuple_size(clients))), key)
        reply(s, "200 OK", ~s({"flag":"#{key}","state":"#{value}"}))
        serve(s, clients, rules_ms)

      {:ok, {:http_request, _, _, _}} ->
        headers(s)
        reply(s, "404 Not Found", "{}")
        serve(s, clients, rules_ms)

      _ ->
        :gen_tcp.close(s)
    end
  end

  defp headers(s), do: if(match?({:ok, {:http_header, _, _, _, _}}, :gen_tcp.recv(s, 0)), do: headers(s))

  defp reply(s, status, body) do
    :gen_tcp.send(s, "HTTP/1.1 #{status}\r\nContent-Type: application/json\r\nContent-Length: #{byte_size(body)}\r\n\r\n#{body}")
  end
end

variant = System.get_env("VARIANT", "flawed")
tcp = if variant == "flawed", do: [], else: [nodelay: true]
store = Store.start()
clients = 1..4 |> Enum.map(fn _ -> Client.start_link(store, tcp) |> elem(1) end) |> List.to_tuple()
port = System.argv() |> List.first() |> String.to_integer()
{:ok, l} = :gen_tcp.listen(port, [:binary, packet: :http_bin, active: false, nodelay: true, reuseaddr: true, backlog: 512, ip: {127, 0, 0, 1}])

accept = fn accept ->
  {:ok, s} = :gen_tcp.accept(l)
  pid = spawn(fn -> receive do: (:go -> Front.serve(s, clients, if(variant == "healthy", do: 170, else: 100))) end)
  :gen_tcp.controlling_process(s, pid)
  send(pid, :go)
  accept.(accept)
end

accept.(accept)

defmodule Buoys.Sea do
  @moduledoc "What the buoys measured last: a stand-in for the feed of the coast guard."

  def latest(buoy, wait_ms) do
    Process.sleep(wait_ms)
    n = :erlang.phash2(buoy, 1000)
    %{buoy: buoy, wave_cm: 40 + rem(n * 7, 310), wind_kn: rem(n, 38), water_c: 4 + rem(n, 15)}
  end
end

defmodule Buoys.Session do
  @moduledoc "Reports are signed with a key of the connection, which the coast stations check."

  @secret "harbour office, pier 4"

  def key(peer, rounds) do
    Enum.reduce(1..rounds, :crypto.hash(:sha256, inspect(peer) <> @secret), fn _, key ->
      :crypto.mac(:hmac, :sha256, @secret, key)
    end)
  end

  def sign(key, body), do: :crypto.mac(:hmac, :sha256, key, body) |> Base.encode16(case: :lower)
end

defmodule Buoys.Http do
  @moduledoc "One process for each connection."

  alias Buoys.{Sea, Session}

  @reasons %{200 => "OK", 400 => "Bad Request", 404 => "Not Found"}

  def serve(socket, options) do
    {:ok, peer} = :inet.peername(socket)
    key = Session.key(peer, options.rounds)
    loop(socket, key, options)
  end

  defp loop(socket, key, options) do
    with {:ok, {:http_request, method, {:abs_path, path}, _version}} <- :gen_tcp.recv(socket, 0, 60_000),
         {:ok, headers} <- headers(socket, %{}) do
      {status, body} = route(method, path, options)
      connection = if headers["connection"] == "close", do: "close", else: options.connection
      :ok = :inet.setopts(socket, packet: :http_bin)
      :gen_tcp.send(socket, response(status, body, key, connection))
      if connection == "close", do: :gen_tcp.close(socket), else: loop(socket, key, options)
    else
      _ -> :gen_tcp.close(socket)
    end
  end

  defp headers(socket, found) do
    case :gen_tcp.recv(socket, 0, 10_000) do
      {:ok, {:http_header, _, name, _, value}} ->
        headers(socket, Map.put(found, name |> to_string() |> String.downcase(), String.downcase(value)))

      {:ok, :http_eoh} ->
        {:ok, found}

      other ->
        other
    end
  end

  defp route(:GET, "/buoys/" <> rest, options) do
    case String.split(rest, "/") do
      [buoy, "report"] -> {200, report(Sea.latest(buoy, options.wait_ms))}
      _ -> {404, ~s({"error":"no such report"})}
    end
  end

  defp route(:GET, "/up", _options), do: {200, ~s({"status":"up"})}
  defp route(_method, _path, _options), do: {404, ~s({"error":"not found"})}

  defp report(m) do
    sea = Enum.find_value([{50, "smooth"}, {125, "slight"}, {250, "moderate"}, {9999, "rough"}], fn {limit, name} ->
      m.wave_cm < limit && name
    end)

    ~s({"buoy":"#{m.buoy}","sea":"#{sea}","wave_cm":#{m.wave_cm},"wind_kn":#{m.wind_kn},"water_c":#{m.water_c}})
  end

  defp response(status, body, key, connection) do
    [
      "HTTP/1.1 #{status} #{@reasons[status]}\r\n",
      "content-type: application/json\r\n",
      "content-length: #{byte_size(body)}\r\n",
      "x-signature: #{Session.sign(key, body)}\r\n",
      "connection: #{connection}\r\n\r\n",
      body
    ]
  end
end

defmodule Buoys.Listener do
  alias Buoys.Http

  def start(port, options) do
    {:ok, listener} =
      :gen_tcp.listen(port, [
        :binary,
        ip: {127, 0, 0, 1},
        packet: :http_bin,
        active: false,
        reuseaddr: true,
        nodelay: true,
        backlog: 1024
      ])

    accept(listener, options)
  end

  defp accept(listener, options) do
    {:ok, socket} = :gen_tcp.accept(listener)

    pid =
      spawn(fn ->
        receive do
          :go -> Http.serve(socket, options)
        end
      end)

    :ok = :gen_tcp.controlling_process(socket, pid)
    send(pid, :go)
    accept(listener, options)
  end
end

options =
  case System.get_env("VARIANT", "flawed") do
    "mended" -> %{connection: "keep-alive", rounds: 600, wait_ms: 20}
    "healthy" -> %{connection: "keep-alive", rounds: 600, wait_ms: 150}
    _ -> %{connection: "close", rounds: 600, wait_ms: 20}
  end

Buoys.Listener.start(String.to_integer(System.fetch_env!("PORT")), options)

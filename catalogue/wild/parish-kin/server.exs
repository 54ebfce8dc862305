defmodule Parish.Archive do
  @moduledoc "The county archive, which knows the shelf of a register; stands on a port of its own."

  def serve(port, latency_ms) do
    {:ok, socket} = :gen_tcp.listen(port, [:binary, packet: :line, active: false, reuseaddr: true, backlog: 512])
    spawn(fn -> accept(socket, latency_ms) end)
  end

  defp accept(socket, latency_ms) do
    {:ok, client} = :gen_tcp.accept(socket)
    pid = spawn(fn -> receive(do: (:go -> answer(client, latency_ms))) end)
    :gen_tcp.controlling_process(client, pid)
    send(pid, :go)
    accept(socket, latency_ms)
  end

  defp answer(client, latency_ms) do
    with {:ok, line} <- :gen_tcp.recv(client, 0) do
      Process.sleep(latency_ms)
      :gen_tcp.send(client, "shelf #{rem(:erlang.phash2(line), 90) + 1}\n")
      answer(client, latency_ms)
    end
  end

  def shelf(port, name) do
    client =
      Process.get(:archive) ||
        with {:ok, new} <- :gen_tcp.connect('127.0.0.1', port, [:binary, packet: :line, active: false, nodelay: true]) do
          Process.put(:archive, new)
          new
        end

    :ok = :gen_tcp.send(client, name <> "\n")
    {:ok, "shelf " <> shelf} = :gen_tcp.recv(client, 0, 5_000)
    shelf |> String.trim() |> String.to_integer()
  end
end

defmodule Parish.Server do
  alias Parish.{Archive, Match, Register}

  @name ~r/^[A-Za-z]{3,24}$/

  def start(port, variant) do
    Register.load()
    Archive.serve(port + 1, if(variant == "healthy", do: 300, else: 15))
    options = [:binary, packet: :http_bin, active: false, reuseaddr: true, nodelay: true, backlog: 512]
    {:ok, socket} = :gen_tcp.listen(port, [{:ip, {127, 0, 0, 1}} | options])
    accept(socket, %{variant: variant, archive: port + 1})
  end

  defp accept(socket, config) do
    {:ok, client} = :gen_tcp.accept(socket)
    pid = spawn(fn -> receive(do: (:go -> request(client, config))) end)
    :gen_tcp.controlling_process(client, pid)
    send(pid, :go)
    accept(socket, config)
  end

  defp request(client, config) do
    with {:ok, {:http_request, method, {:abs_path, target}, _}} <- :gen_tcp.recv(client, 0),
         {:ok, close?} <- headers(client, false) do
      {status, body} = route(method, URI.parse(target), config)

      :gen_tcp.send(client, [
        "HTTP/1.1 #{status}\r\ncontent-type: application/json\r\ncontent-length: #{byte_size(body)}\r\n",
        if(close?, do: "connection: close\r\n\r\n", else: "\r\n"),
        body
      ])

      if close?, do: :gen_tcp.close(client), else: request(client, config)
    else
      _ -> :gen_tcp.close(client)
    end
  end

  defp headers(client, close?) do
    case :gen_tcp.recv(client, 0) do
      {:ok, :http_eoh} -> {:ok, close?}
      {:ok, {:http_header, _, :Connection, _, value}} -> headers(client, String.downcase(value) == "close")
      {:ok, {:http_header, _, _, _, _}} -> headers(client, close?)
      other -> other
    end
  end

  defp route(:GET, %URI{path: "/surnames/" <> name}, config) do
    if name =~ @name do
      shelf = Archive.shelf(config.archive, name)

      found =
        for {distance, entry} <- Match.closest(name, 8, config.variant) do
          {from, to} = entry.years
          ~s({"name":"#{entry.name}","distance":#{distance},"from":#{from},"to":#{to}})
        end

      {"200 OK", ~s({"asked":"#{name}","shelf":#{shelf},"spellings":[#{Enum.join(found, ",")}]})}
    else
      {"400 Bad Request", ~s({"error":"not a surname"})}
    end
  end

  defp route(:GET, %URI{path: "/health"}, _), do: {"200 OK", ~s({"ok":true})}
  defp route(_, _, _), do: {"404 Not Found", ~s({"error":"no such page"})}
end

Parish.Server.start(String.to_integer(System.fetch_env!("PORT")), System.fetch_env!("VARIANT"))

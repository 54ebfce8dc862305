Code.require_file("agency.ex", __DIR__)

defmodule Tours do
  @tours %{
    "1" => {"Upper gallery", 55, 24},
    "2" => {"Crystal river", 90, 12},
    "3" => {"Bats at dusk", 70, 16},
    "4" => {"Old mine and lake", 140, 10}
  }

  def all, do: @tours

  def departures(id, settings) do
    case @tours do
      %{^id => {title, minutes, places}} ->
        slots = Enum.map(free_guides(id, settings), &slot(&1, minutes, places))
        {:ok, ~s({"tour":"#{title}","minutes":#{minutes},"departures":[#{Enum.join(slots, ",")}]})}

      _ ->
        :error
    end
  end

  defp free_guides(id, settings) do
    Agency.guides(id, settings.timeout)
  catch
    :exit, {:timeout, _call} -> settings.late.(id)
  end

  defp slot(line, minutes, places) do
    [guide, hour, age] = String.split(line, ",")
    from = String.to_integer(hour) * 60
    price = 900 + minutes * 11 + String.to_integer(age) * 5

    ~s({"guide":"#{guide}","from":"#{clock(from)}","to":"#{clock(from + minutes)}",) <>
      ~s("places":#{places},"price_cents":#{price}})
  end

  defp clock(minute) do
    two = &(&1 |> Integer.to_string() |> String.pad_leading(2, "0"))
    two.(div(minute, 60)) <> ":" <> two.(rem(minute, 60))
  end
end

defmodule Http do
  def listen(port, settings) do
    options = [:binary, packet: :http_bin, active: false, reuseaddr: true, nodelay: true, backlog: 1024]
    {:ok, listener} = :gen_tcp.listen(port, options)
    accept(listener, settings)
  end

  defp accept(listener, settings) do
    {:ok, socket} = :gen_tcp.accept(listener)
    pid = spawn(fn -> receive(do: (:go -> serve(socket, settings))) end)
    with :ok <- :gen_tcp.controlling_process(socket, pid), do: send(pid, :go)
    accept(listener, settings)
  end

  defp serve(socket, settings) do
    with {:ok, {:http_request, method, {:abs_path, path}, _version}} <- :gen_tcp.recv(socket, 0, 60_000),
         {:ok, close?} <- headers(socket, false) do
      {status, body} = route(method, path |> String.split("?") |> hd() |> String.split("/", trim: true), settings)

      head = [
        "HTTP/1.1 #{status}\r\ncontent-type: application/json\r\ncontent-length: #{byte_size(body)}\r\n",
        if(close?, do: "connection: close\r\n\r\n", else: "\r\n")
      ]

      case :gen_tcp.send(socket, [head, body]) do
        :ok when not close? -> serve(socket, settings)
        _ -> :gen_tcp.close(socket)
      end
    else
      _ -> :gen_tcp.close(socket)
    end
  end

  defp headers(socket, close?) do
    case :gen_tcp.recv(socket, 0, 10_000) do
      {:ok, :http_eoh} -> {:ok, close?}
      {:ok, {:http_header, _, :Connection, _, value}} -> headers(socket, String.downcase(value) == "close")
      {:ok, {:http_header, _, _, _, _}} -> headers(socket, close?)
      _ -> :error
    end
  end

  defp route(:GET, ["health"], _settings), do: {"200 OK", ~s({"status":"ok"})}

  defp route(:GET, ["tours"], _settings) do
    titles = for {id, {title, _, _}} <- Tours.all(), do: ~s({"id":#{id},"title":"#{title}"})
    {"200 OK", "[" <> Enum.join(titles, ",") <> "]"}
  end

  defp route(:GET, ["tours", id, "departures"], settings) do
    case Tours.departures(id, settings) do
      {:ok, body} -> {"200 OK", body}
      :error -> {"404 Not Found", ~s({"error":"no such tour"})}
    end
  catch
    :exit, _ -> {"503 Service Unavailable", ~s({"error":"agency"})}
  end

  defp route(_method, _path, _settings), do: {"404 Not Found", ~s({"error":"not found"})}
end

port = String.to_integer(System.get_env("PORT", "8080"))
none = fn _id -> [] end
again = fn id -> Agency.guides(id, 5_000) end

settings =
  case System.get_env("VARIANT", "mended") do
    "flawed" -> %{sessions: 5, latency_ms: 40, timeout: 250, late: none}
    "mended" -> %{sessions: 64, latency_ms: 40, timeout: 2_000, late: again}
    "healthy" -> %{sessions: 160, latency_ms: 110, timeout: 2_000, late: again}
  end

AgencyDesk.start(port + 1, settings.latency_ms)
Agency.start(port + 1, settings.sessions)
Http.listen(port, settings)

# Freight quotes. One process keeps the tariffs; the carrier is asked for its surcharge of the day.

defmodule Carrier do
  # The carrier's API; it takes any number of calls.
  def surcharge(zone, ms) do
    Process.sleep(ms)
    3 + rem(zone * 7, 11)
  end
end

defmodule Tariffs do
  use GenServer

  def start_link(opts), do: GenServer.start_link(__MODULE__, opts, name: __MODULE__)
  def quote(zone, kilos), do: GenServer.call(__MODULE__, {:quote, zone, kilos}, :infinity)

  @impl true
  def init(opts) do
    base = for zone <- 1..9, into: %{}, do: {zone, 40 + zone * 12}
    {:ok, %{base: base, served: 0, ms: opts[:ms], variant: opts[:variant]}}
  end

  @impl true
  def handle_call({:quote, zone, kilos}, _from, %{variant: "flawed"} = state) do
    percent = Carrier.surcharge(zone, state.ms)
    {:reply, price(state.base[zone], kilos, percent), %{state | served: state.served + 1}}
  end

  def handle_call({:quote, zone, kilos}, from, state) do
    %{base: base, ms: ms} = state

    Task.start(fn ->
      percent = Carrier.surcharge(zone, ms)
      GenServer.reply(from, price(base[zone], kilos, percent))
    end)

    {:noreply, %{state | served: state.served + 1}}
  end

  defp price(nil, _kilos, _percent), do: :unknown_zone
  defp price(base, kilos, percent), do: round((base + kilos * 4) * (100 + percent) / 100)
end

defmodule Web do
  def listen(port, login_ms) do
    options = [:binary, packet: :http_bin, active: false, reuseaddr: true, backlog: 512, nodelay: true, ip: {127, 0, 0, 1}]
    {:ok, socket} = :gen_tcp.listen(port, options)
    for _ <- 1..4, do: spawn_link(fn -> accept(socket, login_ms) end)
    Process.sleep(:infinity)
  end

  defp accept(socket, login_ms) do
    {:ok, client} = :gen_tcp.accept(socket)
    pid = spawn(fn -> receive(do: (:go -> serve(client, login_ms))) end)
    :ok = :gen_tcp.controlling_process(client, pid)
    send(pid, :go)
    accept(socket, login_ms)
  end

  defp serve(client, login_ms) do
    with {:ok, {:http_request, :GET, {:abs_path, path}, _}} <- :gen_tcp.recv(client, 0, 60_000),
         :ok <- skip_headers(client) do
      {status, body} = path |> String.split("/", trim: true) |> route(login_ms)

      :gen_tcp.send(client, [
        "HTTP/1.1 #{status}\r\nContent-Type: application/json\r\nContent-Length: #{byte_size(body)}\r\n\r\n",
        body
      ])

      serve(client, login_ms)
    else
      _ -> :gen_tcp.close(client)
    end
  end

  defp skip_headers(client) do
    case :gen_tcp.recv(client, 0, 10_000) do
      {:ok, :http_eoh} -> :ok
      {:ok, {:http_header, _, _, _, _}} -> skip_headers(client)
      other -> other
    end
  end

  defp route(["quote", zone, kilos], login_ms) do
    Process.sleep(login_ms) # the shipper's account, from the customer system

    case Tariffs.quote(String.to_integer(zone), String.to_integer(kilos)) do
      :unknown_zone -> {"404 Not Found", ~s({"error":"unknown zone"})}
      price -> {"200 OK", ~s({"zone":#{zone},"kilos":#{kilos},"price":#{price}})}
    end
  end

  defp route(_, _), do: {"404 Not Found", ~s({"error":"not found"})}
end

variant = System.get_env("VARIANT", "flawed")
[port] = System.argv()
{:ok, _} = Tariffs.start_link(variant: variant, ms: if(variant == "healthy", do: 80, else: 20))
Web.listen(String.to_integer(port), 100)

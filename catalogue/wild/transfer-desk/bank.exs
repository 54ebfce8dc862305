defmodule Account do
  @moduledoc "One process per account; it owns the balance."
  use GenServer, restart: :permanent

  def child_spec(name), do: %{id: name, start: {__MODULE__, :start_link, [name]}, restart: :permanent}
  def start_link(name), do: GenServer.start_link(__MODULE__, name, name: name)

  # The account that pays moves the money: nobody else can spend it meanwhile.
  def pay(from, to, cents), do: GenServer.call(from, {:pay, to, cents}, 8_000)
  def withdraw(from, cents), do: GenServer.call(from, {:withdraw, cents}, 8_000)
  def deposit(to, cents), do: GenServer.call(to, {:deposit, cents}, 4_000)

  def init(_name), do: {:ok, 1_000_000}

  def handle_call({:pay, to, cents}, _from, balance) when balance >= cents do
    :ok = deposit(to, cents)
    {:reply, :ok, balance - cents}
  end

  def handle_call({:pay, _to, _cents}, _from, balance), do: {:reply, :insufficient, balance}
  def handle_call({:withdraw, cents}, _from, balance), do: {:reply, :ok, balance - cents}
  def handle_call({:deposit, cents}, _from, balance), do: {:reply, :ok, balance + cents}
end

defmodule Desk do
  def transfer(from, to, cents, variant) do
    Process.sleep(if variant == "healthy", do: 180, else: 100) # strong authentication at the bank's partner

    case variant do
      "flawed" -> Account.pay(from, to, cents)
      "mended" -> with :ok <- Account.withdraw(from, cents), do: Account.deposit(to, cents)
      "healthy" -> Account.deposit(to, cents)
    end
  end
end

defmodule Http do
  @names %{"anna" => :anna, "bo" => :bo, "carl" => :carl}

  def serve(socket, variant) do
    :inet.setopts(socket, packet: :http_bin)

    case :gen_tcp.recv(socket, 0) do
      {:ok, {:http_request, method, {:abs_path, path}, _version}} ->
        drain(socket)
        answer(socket, handle(method, path, variant))
        serve(socket, variant)

      _closed_or_garbage ->
        :gen_tcp.close(socket)
    end
  end

  defp handle(:GET, path, variant) do
    with ["transfer", from, to] <- String.split(path, "/", trim: true),
         %{^from => payer, ^to => payee} when from != to <- @names do
      try do
        :ok = Desk.transfer(payer, payee, 5, variant)
        {200, "moved 0.05 from #{from} to #{to}\n"}
      catch
        :exit, {:timeout, _call} -> {504, "account is not answering\n"}
        :exit, _reason -> {500, "account went away\n"}
      end
    else
      _ -> {404, "no such account\n"}
    end
  end

  defp handle(_method, _path, _variant), do: {405, "use GET\n"}

  defp drain(socket) do
    case :gen_tcp.recv(socket, 0) do
      {:ok, :http_eoh} -> :ok
      {:ok, _header} -> drain(socket)
      {:error, _} -> :closed
    end
  end

  defp answer(socket, {code, text}) do
    head = "HTTP/1.1 #{code} #{:httpd_util.reason_phrase(code)}\r\ncontent-type: text/plain\r\n"
    :gen_tcp.send(socket, head <> "content-length: #{byte_size(text)}\r\n\r\n" <> text)
  end
end

Logger.configure(level: :error)
variant = System.get_env("VARIANT", "flawed")
port = System.argv() |> hd() |> String.to_integer()
{:ok, _} = Supervisor.start_link([:anna, :bo, :carl] |> Enum.map(&Account.child_spec/1), strategy: :one_for_one, max_restarts: 100_000)
{:ok, listener} = :gen_tcp.listen(port, [:binary, active: false, nodelay: true, reuseaddr: true, backlog: 1024, ip: {127, 0, 0, 1}])

Stream.repeatedly(fn -> :gen_tcp.accept(listener) end)
|> Enum.each(fn {:ok, socket} ->
  pid = spawn(fn -> receive(do: (:yours -> Http.serve(socket, variant))) end)
  :gen_tcp.controlling_process(socket, pid)
  send(pid, :yours)
end)

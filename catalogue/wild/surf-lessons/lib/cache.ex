defmodule Surf.Cache do
  @moduledoc "Values with a time to live, in ETS."
  def start do
    :ets.new(__MODULE__, [:named_table, :public, read_concurrency: true])
    GenServer.start_link(Surf.Cache.Keeper, [], name: Surf.Cache.Keeper)
  end

  def get(key) do
    now = System.monotonic_time(:millisecond)

    case :ets.lookup(__MODULE__, key) do
      [{^key, value, until}] when now < until -> {:ok, value}
      _ -> :miss
    end
  end

  def put(key, ttl_ms, value) do
    :ets.insert(__MODULE__, {key, value, System.monotonic_time(:millisecond) + ttl_ms})
    value
  end

  def lookup(key) do
    found = get(key)
    Surf.Metrics.count(:cache_lookups_total, ~s(result="#{if found == :miss, do: "miss", else: "hit"}"))
    found
  end
end

defmodule Surf.Cache.Direct do
  alias Surf.Cache

  def fetch(key, ttl_ms, compute) do
    case Cache.lookup(key) do
      {:ok, value} -> value
      :miss -> Cache.put(key, ttl_ms, compute.())
    end
  end
end

defmodule Surf.Cache.Keeper do
  use GenServer
  alias Surf.Cache

  def fetch(key, ttl_ms, compute) do
    with :miss <- Cache.lookup(key),
         do: GenServer.call(__MODULE__, {:load, key, ttl_ms, compute}, 15_000),
         else: ({:ok, value} -> value)
  end

  def init(_), do: {:ok, nil}

  def handle_call({:load, key, ttl_ms, compute}, _from, state) do
    with :miss <- Cache.get(key),
         do: {:reply, Cache.put(key, ttl_ms, compute.()), state},
         else: ({:ok, value} -> {:reply, value, state})
  end
end

defmodule TollTags.Pacer do
  @moduledoc "Spaces the calls to the registry evenly, as its terms of use ask."
  use GenServer

  def start_link(per_s), do: GenServer.start_link(__MODULE__, per_s, name: __MODULE__)

  @doc "Waits for the caller's turn; returns how long that took in milliseconds."
  def take_turn do
    wait_us = GenServer.call(__MODULE__, :reserve, 30_000)
    wait_ms = div(wait_us + 999, 1000)
    if wait_ms > 0, do: Process.sleep(wait_ms)
    wait_ms
  end

  @impl true
  def init(per_s), do: {:ok, %{gap_us: div(1_000_000, per_s), next_us: now_us(), given: 0}}

  @impl true
  def handle_call(:reserve, _from, state) do
    now = now_us()
    turn = max(now, state.next_us)
    {:reply, turn - now, %{state | next_us: turn + state.gap_us, given: state.given + 1}}
  end

  def handle_call(:given, _from, state), do: {:reply, state.given, state}

  defp now_us, do: System.monotonic_time(:microsecond)
end

# Starts the service in the foreground: elixir boot.exs

root = System.fetch_env!("DEBIAN_ROOT")

libraries =
  Path.wildcard("#{root}/usr/lib/erlang/lib/*/ebin") ++
    Path.wildcard("#{root}/usr/lib/rabbitmq/lib/*/plugins/{cowboy,cowlib,ranch}-*/ebin")

for path <- libraries, do: Code.append_path(path)
Code.prepend_path(Path.join(__DIR__, "_build/prod/lib/sum/ebin"))

Logger.configure(level: System.fetch_env!("LOG") |> String.to_existing_atom())

for app <- [:crypto, :cowboy, :sum] do
  {:ok, _} = Application.ensure_all_started(app)
end

Process.sleep(:infinity)

# Starts the service in the foreground: elixir boot.exs [migrate]

root = System.fetch_env!("DEBIAN_ROOT")

libraries =
  Path.wildcard("#{root}/usr/lib/erlang/lib/*/ebin") ++
    Path.wildcard("#{root}/usr/lib/rabbitmq/lib/*/plugins/{cowboy,cowlib,ranch}-*/ebin")

for path <- libraries, do: Code.append_path(path)
Code.prepend_path(Path.join(__DIR__, "_build/prod/lib/items/ebin"))

case System.argv() do
  ["migrate"] ->
    Items.Store.migrate()

  [] ->
    for app <- [:crypto, :cowboy, :poolboy, :items] do
      {:ok, _} = Application.ensure_all_started(app)
    end

    Process.sleep(:infinity)
end

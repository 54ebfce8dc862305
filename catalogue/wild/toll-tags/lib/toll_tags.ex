defmodule TollTags do
  @moduledoc "Which account a toll tag belongs to."

  alias TollTags.{Config, Http, Pacer}

  def start do
    settings = Config.load()
    {:ok, _} = Pacer.start_link(settings.permits_per_s)
    Http.listen(Config.port(), settings)
    Process.sleep(:infinity)
  end
end

-- The global `wrk` of every script: defaults, and those functions of wrk 4.1 that are written in Lua. The functions
-- `lookup` and `connect`, and the fields of the URL, are put in from outside.

local concat, pairs, tostring, type = table.concat, pairs, tostring, type

local wrk = {
   scheme  = "http",
   host    = "localhost",
   port    = nil,
   method  = "GET",
   path    = "/",
   headers = {},
   body    = nil,
   thread  = nil,
}

-- Addresses that take a connection now, in the resolver's order.
function wrk.resolve(host, service)
   local addrs = {}
   for _, addr in ipairs(wrk.lookup(host, service)) do
      if wrk.connect(addr) then
         addrs[#addrs + 1] = addr
      end
   end
   wrk.addrs = addrs
end

function wrk.setup(thread)
   thread.addr = wrk.addrs[1]
   if type(setup) == "function" then
      setup(thread)
   end
end

function wrk.init(args)
   if not wrk.headers["Host"] then
      local host = wrk.host
      if host:find(":", 1, true) then
         host = "[" .. host .. "]"
      end
      if wrk.port then
         host = host .. ":" .. wrk.port
      end
      wrk.headers["Host"] = host
   end

   if type(init) == "function" then
      init(args)
   end

   -- The request of a script without a function `request`: always the same.
   local always = wrk.format()
   function wrk.request()
      return always
   end
end

function wrk.format(method, path, headers, body)
   headers = headers or wrk.headers
   body = body or wrk.body
   if not headers["Host"] then
      headers["Host"] = wrk.headers["Host"]
   end
   headers["Content-Length"] = body and #tostring(body)

   local lines, n = { (method or wrk.method) .. " " .. (path or wrk.path) .. " HTTP/1.1" }, 1
   for name, value in pairs(headers) do
      n = n + 1
      lines[n] = name .. ": " .. tostring(value)
   end
   lines[n + 1] = ""
   lines[n + 2] = body or ""
   return concat(lines, "\r\n")
end

-- What calls a script while it runs. The globals are looked up for each call: a script may change them on its way.
local calls = {}

function calls.request()
   local make = request
   if type(make) ~= "function" then
      make = wrk.request
   end
   return make()
end

function calls.delay()
   return delay()
end

function calls.response(status, headers, body)
   return response(status, headers, body)
end

return wrk, calls

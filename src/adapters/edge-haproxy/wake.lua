-- Holds a request to an application that is asleep until its route leads to it, or for 30 seconds; the control plane starts it.
-- The first request of a project asks at the socket that is the action's argument; the others only look at the route.
local hosts = Map.new("hosts.map", Map._str)
local limit_s, look_ms = 30, 20
local asked = {}

local function is_asleep(host)
  return string.sub(hosts:lookup(host) or "", -7) == "/asleep"
end

local function ask(path, project)
  local socket = core.tcp()
  socket:settimeout(limit_s)
  if socket:connect("unix@" .. path) then
    socket:send(project .. "\n")
    socket:receive("*l")
  end
  socket:close()
end

core.register_action("wake", { "http-req" }, function(txn, path)
  local project = string.match(txn:get_var("txn.route"), "^[^/]*/([^/]*)/")
  local host = string.match(string.lower(txn.f:req_fhdr("host")), "^([^:]*)"):gsub("%.+$", "")
  local end_s = core.now().sec + limit_s
  -- A client that leaves ends its action at once, so a question may stay here.
  if (asked[project] or 0) <= core.now().sec then
    asked[project] = end_s
    pcall(ask, path, project)
    asked[project] = nil
    return
  end
  while is_asleep(host) and asked[project] and core.now().sec < end_s do core.msleep(look_ms) end
end, 1)

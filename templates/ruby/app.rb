require "webrick"

greeting = ENV.fetch("GREETING", "Hello from Ruby")
server = WEBrick::HTTPServer.new(Port: Integer(ENV.fetch("PORT", "3000")), BindAddress: "0.0.0.0")

server.mount_proc("/") do |_, response|
  response["content-type"] = "text/plain; charset=utf-8"
  response.body = "#{greeting}\n"
end

trap("TERM") { server.shutdown }
server.start

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

public class Hello {
  public static void main(String[] arguments) throws IOException {
    var variables = System.getenv();
    var port = Integer.parseInt(variables.getOrDefault("PORT", "3000"));
    var greeting = variables.getOrDefault("GREETING", "Hello from Java") + "\n";
    var body = greeting.getBytes(StandardCharsets.UTF_8);
    var server = HttpServer.create(new InetSocketAddress(port), 0);
    server.createContext("/", exchange -> {
      exchange.getResponseHeaders().set("content-type", "text/plain; charset=utf-8");
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
      exchange.close();
    });
    server.setExecutor(Executors.newCachedThreadPool());
    server.start();
  }
}

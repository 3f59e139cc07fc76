import { dnsSuite } from "../../ports/dns.suite.ts";
import { createDnsResolver } from "./dns-resolver.ts";

dnsSuite("resolver", (server, timeoutMs) => createDnsResolver({ servers: [server], timeoutMs }));

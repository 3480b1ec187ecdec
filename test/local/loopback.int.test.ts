import { createServer } from "node:http";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { answersOk, freePort, isPortFree } from "../../src/local/loopback.ts";
import { systemRandom } from "../../src/system/random.ts";

describe("loopback", () => {
  it("offers a port that is free, and not one that is taken", async () => {
    const port = await freePort(systemRandom);
    expect(await isPortFree(port)).toBe(true);
    const server = createServer().listen(port, "127.0.0.1");
    await once(server, "listening");
    expect(await isPortFree(port)).toBe(false);
    server.close();
  });

  it("counts only success as an answer, and silence as none within the bound", async () => {
    const server = createServer((request, response) => {
      if (request.url === "/silent") return;
      response.statusCode = request.url === "/ok" ? 200 : 503;
      response.end("text");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    expect(await answersOk(port, "/ok")).toBe(true);
    expect(await answersOk(port, "/other")).toBe(false);
    // Never answered by the server: that this ends at all is what is shown.
    expect(await answersOk(port, "/silent")).toBe(false);
    server.closeAllConnections();
    server.close();
    await once(server, "close");
    expect(await answersOk(port, "/ok")).toBe(false);
  });
});

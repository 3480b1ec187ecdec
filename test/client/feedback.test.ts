import { describe, expect, it } from "vitest";
import { prepareFeedback, type FeedbackRequest } from "../../src/client/feedback.ts";
import { prepareStart } from "../../src/client/start.ts";
import { readCommand } from "../../src/protocol/command.ts";
import { commandSubjects, headerNames, replyPrefixDefault } from "../../src/protocol/names.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { DurationMs } from "../../src/base/units.ts";

const { waiting, message: start } = prepareStart(
  { flow: { id: "orders", version: "12" }, execution: "ex-1", node: "n", edges: { start: "a", elapsed: "b" }, wait: { delayMs: 1 }, body: new Uint8Array([1]) },
  { brokerPayloadBytesMax: undefined },
  systemSha256,
);
const target = { ...waiting, generation: 2, fence: 6 };
const prepare = (request: object) => prepareFeedback(request as FeedbackRequest, { brokerPayloadBytesMax: undefined }, systemSha256);
const limits = { payloadBytesMax: 1_000_000, delayMsMax: 1_000 as DurationMs, retriesMax: 1_000, replyPrefix: replyPrefixDefault };

describe("prepareFeedback", () => {
  const requests = [
    { verb: "retry", target, body: new Uint8Array(0) },
    { verb: "complete", target, body: new Uint8Array([1, 2]) },
    { verb: "fail", target, body: new Uint8Array(0), failure: { code: "card_declined", message: "tarjeta rechazada: límite" } },
  ] as const;
  it.each(requests)("what it makes of $verb is a command that workers read", (request) => {
    const made = prepare(request);
    const headers = new Map<string, string>([[headerNames.context, made.contextHeader]]);
    const read = readCommand(
      { subject: commandSubjects[request.verb], sequence: 1, timestampNs: 0n, body: made.body, headers: { get: (name) => headers.get(name), all: () => [] } },
      limits,
      systemSha256,
    );
    expect(read).toMatchObject({
      ok: true,
      key: { ref: start.ref },
      input: { kind: "feedback", verb: request.verb, generation: 2, fence: 6, snapshotHash: waiting.snapshotHash, ...("failure" in request ? { failure: request.failure } : {}) },
    });
  });

  it("gives a message id that differs by verb, fence, body and failure, and by nothing else", () => {
    const ids = [
      ...requests.map((request) => prepare(request).messageId),
      prepare({ ...requests[0], target: { ...target, fence: 7 } }).messageId,
      prepare({ ...requests[1], body: new Uint8Array([1, 3]) }).messageId,
      prepare({ ...requests[2], failure: { code: "card_declined", message: "other" } }).messageId,
    ];
    expect(new Set(ids).size).toBe(6);
    expect(prepare({ ...requests[2] }).messageId).toBe(ids[2]);
  });

  const refused = [
    { name: "a fence that is no counter", changed: { target: { ...target, fence: -1 } }, field: "fence" },
    { name: "a hash of another kind", changed: { target: { ...target, snapshotHash: "md5:00" } }, field: "snapshotHash" },
    { name: "a fail without its failure", changed: { verb: "fail" }, field: "failure" },
    { name: "a fail with an empty code", changed: { verb: "fail", failure: { code: "", message: "" } }, field: "failure.code" },
    { name: "a body that is no bytes", changed: { body: null }, field: "body" },
  ];
  it.each(refused)("refuses $name and names $field", ({ changed, field }) => {
    const request = { ...requests[0], ...changed };
    expect(() => prepare(request)).toThrow(expect.objectContaining({ kind: "invalid", code: "REQUEST_INVALID", message: expect.stringMatching(new RegExp(`^${request.verb}: ${field} `)) as string }));
  });
});

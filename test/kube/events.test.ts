import { expect, test } from "vitest";
import { eventNoteBytesMax, eventSeriesMs, eventsPerResourceMax, eventsRememberedMax } from "../../src/base/limits.ts";
import { Failure } from "../../src/base/failure.ts";
import type { ApiRequest, ApiResult, KubeApi } from "../../src/kube/api.ts";
import { EventWriter } from "../../src/kube/events.ts";
import type { ResourceEvent } from "../../src/operator/ports.ts";
import { seededRandom } from "../../src/system/random.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeLog } from "../fakes/log.ts";

type Bed = { readonly clock: SteppedClock; readonly requests: ApiRequest[]; readonly answers: ApiResult<unknown>[]; readonly log: FakeLog; readonly writer: EventWriter };

/** Answers each request with success unless a test says otherwise. */
function setUp(): Bed {
  const [clock, requests, answers, log] = [new SteppedClock(), [] as ApiRequest[], [] as ApiResult<unknown>[], new FakeLog()];
  const api: KubeApi = {
    call: async <T>(request: ApiRequest) => {
      requests.push(request);
      return (answers.shift() ?? { kind: "ok", value: {} }) as ApiResult<T>;
    },
    stream: () => Promise.reject(new Error("expected no watch")),
  };
  return { clock, requests, answers, log, writer: new EventWriter({ api, clock, random: seededRandom(1), log, instance: "operator-0" }) };
}

const about = (uid: string) => ({ key: { namespace: "n", name: "orders" }, uid });
const event = (message: string): ResourceEvent => ({ severity: "Warning", reason: "NotReady", message });
const failed = (code: "CLUSTER_MISSING" | "CLUSTER_DENIED"): ApiResult<unknown> => ({ kind: "failed", failure: new Failure("conflict", code, "PATCH /x") });
const methods = ({ requests }: Bed): readonly string[] => requests.map(({ method }) => method);

test("repeats are counted on the first event while they come, and begin anew after a pause", async () => {
  const bed = setUp();
  await bed.writer.emit(about("u"), event("a"));
  await bed.clock.advance(eventSeriesMs - 1);
  await bed.writer.emit(about("u"), event("a"));
  await bed.clock.advance(eventSeriesMs - 1);
  await bed.writer.emit(about("u"), event("a"));
  await bed.clock.advance(eventSeriesMs);
  await bed.writer.emit(about("u"), event("a"));
  expect(methods(bed)).toEqual(["POST", "PATCH", "PATCH", "POST"]);
  expect(bed.requests[2]?.body).toMatchObject({ series: { count: 3 } });
});

test("other words, another reason or another resource are another event", async () => {
  const bed = setUp();
  await bed.writer.emit(about("u"), event("a"));
  await bed.writer.emit(about("u"), event("b"));
  await bed.writer.emit(about("u"), { ...event("a"), reason: "Stalled" });
  await bed.writer.emit(about("v"), event("a"));
  expect(methods(bed)).toEqual(["POST", "POST", "POST", "POST"]);
});

test("an event that the API server has dropped by then is written anew", async () => {
  const bed = setUp();
  await bed.writer.emit(about("u"), event("a"));
  bed.answers.push(failed("CLUSTER_MISSING"));
  await bed.writer.emit(about("u"), event("a"));
  expect(methods(bed)).toEqual(["POST", "PATCH", "POST"]);
});

test("a refusal is noted and forgotten", async () => {
  const bed = setUp();
  bed.answers.push(failed("CLUSTER_DENIED"));
  await bed.writer.emit(about("u"), event("a"));
  await bed.writer.emit(about("u"), event("a"));
  expect(methods(bed), "nothing is counted on an event that was never written").toEqual(["POST", "POST"]);
  expect(bed.log.messages("debug")).toEqual(["Dropped an event"]);
});

test("one resource cannot flood the API server, and others are not held back", async () => {
  const bed = setUp();
  for (let count = 0; count < eventsPerResourceMax + 20; count += 1) await bed.writer.emit(about("loud"), event(String(count)));
  expect(bed.requests).toHaveLength(eventsPerResourceMax);
  await bed.writer.emit(about("quiet"), event("a"));
  expect(bed.requests).toHaveLength(eventsPerResourceMax + 1);
  await bed.clock.advance(eventSeriesMs);
  await bed.writer.emit(about("loud"), event("later"));
  expect(bed.requests).toHaveLength(eventsPerResourceMax + 2);
});

test("what is remembered is bounded: the oldest kind of event is forgotten first", async () => {
  const bed = setUp();
  for (let count = 0; count <= eventsRememberedMax; count += 1) await bed.writer.emit(about(`u${String(count)}`), event("a"));
  bed.requests.length = 0;
  await bed.writer.emit(about(`u${String(eventsRememberedMax)}`), event("a"));
  await bed.writer.emit(about("u0"), event("a"));
  expect(methods(bed)).toEqual(["PATCH", "POST"]);
});

test("an event says what, about what and from whom, within the API's bounds", async () => {
  const bed = setUp();
  await bed.writer.emit(about("u"), event("x".repeat(eventNoteBytesMax + 1)));
  await bed.writer.emit(about("u"), event("ü".repeat(eventNoteBytesMax)));
  expect(bed.requests[1]).toMatchObject({ body: { note: "ü".repeat(eventNoteBytesMax / 2) } });
  expect(bed.requests[0]).toMatchObject({
    path: "/apis/events.k8s.io/v1/namespaces/n/events",
    body: {
      type: "Warning",
      reason: "NotReady",
      note: "x".repeat(eventNoteBytesMax),
      eventTime: "2030-01-01T00:00:00.000000Z",
      reportingController: "durabletimer.dev/operator",
      reportingInstance: "operator-0",
      regarding: { apiVersion: "durabletimer.dev/v1alpha1", kind: "DurableTimer", namespace: "n", name: "orders", uid: "u" },
    },
  });
});

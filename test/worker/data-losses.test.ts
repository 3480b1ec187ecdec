import { describe, expect, test } from "vitest";
import type { DataLook } from "../../src/worker/ports.ts";
import { dataStreams, decideData, describeLoss, initialData, isMadeAnew, isUndecidable, type DataLoss, type DataState } from "../../src/worker/data-losses.ts";
import { wholeData } from "../fakes/worker-ports.ts";

const whole = wholeData();
const seen = decideData(initialData, whole);

/** The same look, but for one stream. */
function but(stream: keyof DataLook["streams"], over: Partial<NonNullable<DataLook["streams"]["state"]>> | undefined): DataLook {
  const life = whole.streams[stream];
  return { ...whole, streams: { ...whole.streams, [stream]: over === undefined || life === undefined ? undefined : { ...life, ...over } } };
}

function looks(...all: readonly (DataLook | undefined)[]): DataState {
  return all.reduce((state: DataState, look) => decideData(state, look), seen);
}

describe("a data stream", () => {
  const rows: readonly { name: string; look: DataLook; want: readonly DataLoss[]; because: string }[] = [
    { name: "that is as it was", look: whole, want: [], because: "nothing happened" },
    { name: "that has grown", look: but("commands", { lastSequence: 9 }), want: [], because: "streams grow" },
    { name: "that is gone", look: but("resumes", undefined), want: [{ stream: "resumes", kind: "missing" }], because: "what it held is gone" },
    { name: "of another mark", look: but("terminals", { incarnation: "second" }), want: [{ stream: "terminals", kind: "replaced" }], because: "it holds nothing of what was stored" },
    { name: "of nobody", look: but("commands", { incarnation: "", ownerId: "" }), want: [{ stream: "commands", kind: "replaced" }], because: "somebody else made it" },
    { name: "that went back", look: but("feedback", { lastSequence: 4 }), want: [{ stream: "feedback", kind: "rewound" }], because: "its tail is lost" },
    { name: "that went back and was created again", look: but("feedback", { lastSequence: 4, createdAt: "2030-01-02T00:00:00Z" }), want: [], because: "D3: a backup is of an earlier time" },
    { name: "STATE without the owner's key", look: { ...whole, hasOwnerKey: false }, want: [{ stream: "state", kind: "emptied" }], because: "nothing of ours removes it" },
    { name: "SNAPSHOTS without anything beside live records", look: { ...whole, lacksSnapshots: true }, want: [{ stream: "snapshots", kind: "emptied" }], because: "a live record has its snapshot (I3)" },
  ];
  test.each(rows)("$name", ({ look, want, because }) => {
    const before = decideData(seen, but("feedback", { lastSequence: 5 }));
    const first = decideData(before, look);
    expect(first.found, because).toEqual(expect.arrayContaining([...want]));
    expect(first.losses, "D1").toEqual([]);
    expect(decideData(first, look).losses.filter(({ stream }) => want.some((loss) => loss.stream === stream)), because).toEqual(want);
  });

  test("is whole only after a first look, and a silent broker changes nothing", () => {
    expect(initialData.isWhole).toBe(false);
    expect(decideData(initialData, undefined)).toBe(initialData);
    expect(seen.isWhole).toBe(true);
    const lost = looks(but("state", undefined), but("state", undefined));
    expect(decideData(lost, undefined).losses).toEqual([{ stream: "state", kind: "missing" }]);
  });

  test("that is found lost once only was read from a leader of the past", () => {
    const lagging = decideData(seen, but("state", { lastSequence: 7 }));
    const once = decideData(lagging, whole);
    expect([once.isWhole, once.losses]).toEqual([false, []]);
    const after = decideData(once, but("state", { lastSequence: 8 }));
    expect([after.isWhole, after.losses]).toEqual([true, []]);
  });

  test("stays lost until it is what it was, or restored from a backup", () => {
    const gone = but("snapshots", undefined);
    const lost = looks(gone, gone, gone);
    expect(lost.losses).toEqual([{ stream: "snapshots", kind: "missing" }]);
    const back = decideData(lost, but("snapshots", { createdAt: "2030-02-01T00:00:00Z" }));
    expect([back.isWhole, back.losses, back.restored]).toEqual([true, [], ["snapshots"]]);
    expect(decideData(back, but("snapshots", { createdAt: "2030-02-01T00:00:00Z" })).restored).toEqual([]);
    expect(decideData(back, undefined).restored).toEqual([]);
  });
});

describe("what follows from a loss", () => {
  test("nothing is decided without STATE or SNAPSHOTS, nor before the first look", () => {
    expect([initialData, seen].map(isUndecidable)).toEqual([true, false]);
    expect(isUndecidable(looks({ ...whole, hasOwnerKey: false }))).toBe(true);
    expect(isUndecidable(looks(but("snapshots", undefined)))).toBe(true);
    const grown = (stream: "state" | "snapshots") => decideData(seen, but(stream, { lastSequence: 9 }));
    expect(isUndecidable(decideData(grown("state"), but("state", { lastSequence: 8 })))).toBe(true);
    // The timers whose snapshots went with the tail are recognised one by one.
    expect(isUndecidable(decideData(grown("snapshots"), but("snapshots", { lastSequence: 8 })))).toBe(false);
    for (const stream of ["terminals", "resumes", "feedback", "commands"] as const) expect(isUndecidable(looks(but(stream, undefined)))).toBe(false);
  });

  test("only what its owner made anew may be begun with, by another process", () => {
    const anew = but("state", { incarnation: "second" });
    expect(isMadeAnew(looks(anew), anew)).toBe(false);
    expect(isMadeAnew(looks(anew, anew), anew)).toBe(true);
    const foreign = but("state", { incarnation: "second", ownerId: "another" });
    expect(isMadeAnew(looks(foreign, foreign), foreign)).toBe(false);
    expect(isMadeAnew(looks(foreign, foreign), undefined)).toBe(false);
  });

  test("it is told in words", () => {
    expect(describeLoss({ stream: "state", kind: "emptied" })).toBe("stream KV_DURABLE_TIMER_STATE was emptied; no start is taken");
    expect(dataStreams).toHaveLength(6);
  });
});

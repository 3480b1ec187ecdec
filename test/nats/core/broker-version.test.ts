import { describe, expect, test } from "vitest";
import { brokerApiLevelMin, brokerVersionMin } from "../../../src/base/limits.ts";
import { brokerProblem } from "../../../src/nats/core/broker-version.ts";

describe("a broker", () => {
  test.each([
    { version: "2.14.4", isAccepted: true, because: "the floor itself" },
    { version: "2.14.9", isAccepted: true, because: "a later patch" },
    { version: "2.15.0", isAccepted: true, because: "a later minor with a smaller patch" },
    { version: "3.0.0", isAccepted: true, because: "a later major" },
    { version: "2.15.0-RC.1", isAccepted: true, because: "a pre-release of a later version" },
    { version: "2.14.3", isAccepted: false, because: "one patch short" },
    { version: "2.12.9", isAccepted: false, because: "knows schedules, and not those that we need" },
    { version: "2.9.10", isAccepted: false, because: "9 is less than 14" },
    { version: "1.99.99", isAccepted: false, because: "an earlier major" },
    { version: "unknown", isAccepted: false, because: "nothing is known of it" },
  ])("of version $version is accepted: $isAccepted ($because)", ({ version, isAccepted }) => {
    expect(brokerProblem({ version, serverName: "n1" }, { apiLevel: brokerApiLevelMin }) === undefined).toBe(isAccepted);
  });

  test("that is too old is refused with what to install", () => {
    const problem = brokerProblem({ version: "2.11.0", serverName: "n1" });
    expect(problem?.code).toBe("BROKER_TOO_OLD");
    expect(problem?.message).toBe(`NATS server n1 is 2.11.0: install NATS server ${brokerVersionMin.join(".")} or newer on every server`);
  });

  test("whose cluster is led by an older server is refused by its API level", () => {
    expect(brokerProblem({ version: "2.15.2", serverName: "n1" }, { apiLevel: brokerApiLevelMin - 1 })).toMatchObject({ kind: "invalid", code: "BROKER_TOO_OLD" });
  });
});

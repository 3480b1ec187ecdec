import { expect, test } from "vitest";
import { itemLike, itemName, listKeys } from "../../../src/kube/manifests/list-keys.ts";

test("lists that are merged have keys, others have none", () => {
  expect(listKeys("ports")).toEqual(["containerPort", "protocol"]);
  expect(listKeys("tolerations"), "they are replaced as a whole").toBeUndefined();
});

test("an item is found by all of its keys", () => {
  const ports = [{ containerPort: 1, protocol: "UDP" }, { containerPort: 1, protocol: "TCP", name: "x" }];
  expect(itemLike(ports, { containerPort: 1, protocol: "TCP" }, ["containerPort", "protocol"])).toBe(ports[1]);
  expect(itemLike(ports, { containerPort: 2, protocol: "TCP" }, ["containerPort", "protocol"])).toBeUndefined();
  expect(itemName({ containerPort: 1, protocol: "TCP" }, ["containerPort", "protocol"])).toBe("1,TCP");
});

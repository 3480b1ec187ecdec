/**
 * Bounds of the resource's fields. Each list, map and string of the CRD has one, because the API server estimates the cost
 * of a rule from them, and because a status or a worker's configuration must stay far below the size of an object.
 */
import { delayMsMaxDefault } from "../base/limits.ts";

/** Bounds by what they bound; units are in the names. */
export const resourceBounds = {
  /** The resource's own name: its children add suffixes and must stay within 63 characters. */
  resourceNameCharsMax: 46,
  nameCharsMax: 253,
  serverCharsMax: 512,
  serversMax: 16,
  domainCharsMax: 64,
  replyPrefixCharsMax: 128,
  ownerIdCharsMax: 512,
  placementTagsMax: 16,
  quantityCharsMax: 32,
  /** A stream that cannot hold one largest message with its headers is of no use. */
  streamBytesMin: 1024 * 1024 * 2,
  delaySecondsMax: delayMsMaxDefault / 1_000,
  retriesMax: 1_000_000,
  ackWaitSecondsMax: 86_400,
  ackPendingMax: 100_000,
  sweepIntervalSecondsMin: 5,
  workersMax: 1_000,
  imageCharsMax: 1_024,
  terminationGraceSecondsMin: 15,
  progressDeadlineSecondsMin: 30,
  acknowledgeMax: 16,
  incidentIdCharsMax: 128,
  podListMax: 64,
  labelKeyCharsMax: 317,
  labelValueCharsMax: 63,
  annotationCharsMax: 4_096,
  messageCharsMax: 32_768,
  conditionsMax: 32,
} as const;

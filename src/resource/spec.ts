/**
 * The spec of a DurableTimer, as the one source of its shape: the CRD, defaults, checks and types all derive from it.
 *
 * It stays within a house subset of zod (object, string, int, boolean, enum, array, record, exactOptional, default), because
 * a Kubernetes schema cannot say more. A choice is therefore one optional object per variant and a rule in rules.ts.
 *
 * 1. A default is written into the stored resource for ever, so only what must not change under a running system has one.
 * 2. Every parent of a defaulted field is required or defaulted itself, or the default would never be applied.
 * 3. Every string, list and map is bounded: rules over unbounded values are refused by the API server.
 */
import { z } from "zod";
import { archiveAgeMsMin, dedupeMsMin, delayMsMaxDefault, feedbackTimeoutMsDefault, feedbackTimeoutMsMin, payloadBytesMax, retentionMsMax, retriesMaxDefault } from "../base/limits.ts";
import { resourceBounds as bounds } from "./bounds.ts";
import { byteSize, quantity } from "./quantity.ts";

const name = (describes: string) => z.string().min(1).max(bounds.nameCharsMax).regex(dnsName).meta({ description: describes });
const secretKey = (fallback: string) =>
  z.exactOptional(z.string().min(1).max(bounds.nameCharsMax).regex(/^[-._a-zA-Z0-9]+$/))
    .meta({ description: `Key within the Secret. Without it: ${fallback}.` });
const dnsName = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

const secretName = name("Name of a Secret in the resource's own namespace.");

const credentialsRef = z.object({ name: secretName, key: secretKey("user.creds") });
const nkeyRef = z.object({ name: secretName, key: secretKey("user.nk") });
const userPasswordRef = z.object({ name: secretName, userKey: secretKey("username"), passwordKey: secretKey("password") });
const tokenRef = z.object({ name: secretName, key: secretKey("token") });

const authShape = {
  credentialsSecretRef: z.exactOptional(credentialsRef).meta({ description: "A NATS credentials file: user JWT and NKey seed." }),
  nkeySecretRef: z.exactOptional(nkeyRef).meta({ description: "An NKey seed." }),
  userPasswordSecretRef: z.exactOptional(userPasswordRef).meta({ description: "A user name and its password." }),
  tokenSecretRef: z.exactOptional(tokenRef).meta({ description: "A token." }),
};

const tls = z.object({
  caSecretRef: z
    .exactOptional(z.object({ name: secretName, key: secretKey("ca.crt") }))
    .meta({ description: "Certificate authorities that the server's certificate is checked against. Without it: those of the image." }),
  clientCertSecretRef: z
    .exactOptional(z.object({ name: secretName }))
    .meta({ description: "A Secret of type kubernetes.io/tls (tls.crt, tls.key) with which the client identifies itself." }),
  handshakeFirst: z
    .exactOptional(z.boolean())
    .meta({ description: "Start TLS before the server's greeting; the server must be configured with handshake_first." }),
});

const server = z.string().min(1).max(bounds.serverCharsMax).regex(/^(nats|tls):\/\/[^\s/?#@]+$/, "must be nats:// or tls:// and a host, such as nats://localhost:4222, without credentials");

const nats = z.object({
  servers: z
    .array(server)
    .min(1)
    .max(bounds.serversMax)
    .meta({ description: "Servers of one NATS system, such as tls://nats.nats.svc:4222. Credentials do not belong here." }),
  accountName: z
    .exactOptional(z.string().min(1).max(bounds.nameCharsMax))
    .meta({ description: "Guard: the NATS account that the connection must belong to. In any other account nothing is touched." }),
  jetStreamDomain: z
    .exactOptional(z.string().min(1).max(bounds.domainCharsMax).regex(/^[A-Za-z0-9_-]+$/))
    .meta({ description: "JetStream domain of the streams. Cannot be added, changed or removed later." }),
  tls: z.exactOptional(tls).meta({ description: "TLS settings for the connections of the operator and of the workers." }),
  auth: z
    .exactOptional(z.object(authShape))
    .meta({ description: "The operator's identity: at most one way. It needs the rights to create and update streams and consumers." }),
  replyPrefix: z
    .string()
    .min(1)
    .max(bounds.replyPrefixCharsMax)
    .regex(/^[A-Za-z0-9_$-]+(\.[A-Za-z0-9_$-]+)*$/)
    .default("_INBOX.durable_timer")
    .meta({ description: "Outcomes of commands are sent only to reply subjects below this prefix." }),
});

const stream = (describes: string) =>
  z.object({ maxBytes: byteSize.meta({ description: "Largest size of the stream per replica, such as 10Gi." }) }).meta({ description: describes });

const placement = z.object({
  cluster: z.exactOptional(z.string().min(1).max(bounds.nameCharsMax)).meta({ description: "Name of the NATS cluster that holds the streams." }),
  tags: z
    .exactOptional(z.array(z.string().min(1).max(bounds.nameCharsMax)).max(bounds.placementTagsMax))
    .meta({ description: "Tags that a server must have to hold a replica." }),
});

const adoption = z.object({
  policy: z.enum(["Own", "IfUnowned", "FromOwner"]).default("Own").meta({
    description: "Which existing streams may be taken over. Own: those of this owner. IfUnowned: also those that nobody owns. FromOwner: also those of the owner named in fromOwner.",
  }),
  fromOwner: z
    .exactOptional(z.string().max(bounds.ownerIdCharsMax))
    .meta({ description: "Owner id to take over from, as <cluster id>/<namespace>/<name>; required by the policy FromOwner." }),
});

const topology = z.object({
  replicas: z.int32().min(1).max(5).default(1).meta({ description: "Copies of each stream: 1, 3 or 5." }),
  placement: z.exactOptional(placement).meta({ description: "Where in the NATS system the streams live." }),
  streams: z
    .object({
      state: stream("Records of live timers."),
      commands: stream("Start commands that wait for a worker. When it is full, publishers are refused."),
      feedback: stream("Retry, complete and fail commands that wait for a worker."),
      snapshots: stream("What each start carried, byte for byte."),
      terminals: stream("The archive of timers that ended."),
      resumes: stream("Resumes that wait for the flow's owner."),
    })
    .meta({ description: "Sizes of the streams. The stream of schedules has no limit: a limit there would evict pending timers." }),
  adoption: adoption.prefault({}).meta({ description: "How streams that exist already are treated." }),
});

const limits = z.object({
  payloadBytesMax: z.int32().min(1).max(payloadBytesMax).default(payloadBytesMax).meta({ description: "Largest body of a start." }),
  delaySecondsMax: z
    .int32()
    .min(1)
    .max(bounds.delaySecondsMax)
    .default(delayMsMaxDefault / 1_000)
    .meta({ description: "Longest wait that a start may ask for, in seconds." }),
  retriesMax: z.int32().min(0).max(bounds.retriesMax).default(retriesMaxDefault).meta({ description: "Largest maxRetries that a start may ask for." }),
});

const percent = z.int32().min(1).max(100);

const admission = z.object({
  state: z.enum(["Open", "Closed"]).default("Open").meta({ description: "Closed: starts wait in their stream; feedback and wakes go on." }),
  closePercent: percent.default(85).meta({ description: "Starts are held back once a stream or the account is this full." }),
  reopenPercent: percent.default(75).meta({ description: "Starts are taken again once everything is below this; less than closePercent." }),
});

const resume = z.object({
  state: z.enum(["Open", "Paused"]).default("Open").meta({ description: "Paused: resumes are stored and not delivered." }),
  ackWaitSeconds: z.int32().min(1).max(bounds.ackWaitSecondsMax).default(60).meta({ description: "A resume that is not acknowledged within this time is delivered again." }),
  maxAckPending: z.int32().min(1).max(bounds.ackPendingMax).default(1_000).meta({ description: "Resumes that may be delivered and not yet acknowledged." }),
});

const feedback = z.object({
  timeoutSeconds: z
    .int32()
    .min(feedbackTimeoutMsMin / 1_000)
    .max(bounds.delaySecondsMax)
    .default(feedbackTimeoutMsDefault / 1_000)
    .meta({ description: "An elapsed timer without feedback for this long counts as unanswered. Found by the sweep, so up to a sweep interval later." }),
  onTimeout: z.enum(["None", "Fail", "ResumeAgain"]).default("None").meta({
    description: "What happens to an unanswered timer. None: it is counted and goes on waiting. Fail: it ends as failed, with the code feedback_timeout. ResumeAgain: the same resume is published once more.",
  }),
});

const sweep = z.object({
  intervalSeconds: z.int32().min(bounds.sweepIntervalSecondsMin).max(86_400).default(300).meta({ description: "How often state and schedules are compared." }),
  graceSeconds: z.int32().min(1).max(3_600).default(5).meta({ description: "How late a timer may be before the sweep looks at it." }),
});

const archiveRetention = z.object({
  policy: z.enum(["Keep", "Expire"]).default("Keep").meta({
    description: "Keep: ended timers are kept for ever. Expire: their archive records and snapshots are removed after afterSeconds.",
  }),
  afterSeconds: z
    .exactOptional(z.int32().min(archiveAgeMsMin / 1_000).max(retentionMsMax / 1_000))
    .meta({ description: "How long an ended timer is kept, from its archiving on; required by the policy Expire." }),
  dedupeSeconds: z
    .exactOptional(z.int32().min(dedupeMsMin / 1_000).max(retentionMsMax / 1_000))
    .meta({ description: "How long, after that, its start is still recognised; then the same start is a new timer. Required by the policy Expire." }),
});

const retention = z.object({ archive: archiveRetention.prefault({}).meta({ description: "Archive records and snapshots of timers that ended." }) });

/** Maps have no size of their own in zod, so the bound is written for both readers of this schema. */
const mapOf = <Value extends z.ZodType>(value: Value) =>
  z
    .record(z.string().max(bounds.labelKeyCharsMax), value)
    .refine((map) => Object.keys(map).length <= bounds.podListMax, { error: `must have at most ${String(bounds.podListMax)} keys` })
    .meta({ maxProperties: bounds.podListMax });

const labelMap = mapOf(z.string().max(bounds.labelValueCharsMax));
const annotationMap = mapOf(z.string().max(bounds.annotationCharsMax));
const named = z.looseObject({ name: z.string().min(1).max(bounds.nameCharsMax).meta({ description: "Name, as in a pod." }) });
const list = <Item extends z.ZodType>(item: Item) => z.exactOptional(z.array(item).max(bounds.podListMax));
const anything = z.looseObject({});

const podTemplate = z.object({
  metadata: z
    .exactOptional(
      z.object({
        labels: z.exactOptional(labelMap).meta({ description: "Labels added to the pods." }),
        annotations: z.exactOptional(annotationMap).meta({ description: "Annotations added to the pods." }),
      }),
    )
    .meta({ description: "Labels and annotations of the pods; those that the operator sets itself win." }),
  spec: z
    .exactOptional(
      z.object({
        serviceAccountName: z.exactOptional(z.string().max(bounds.nameCharsMax)).meta({ description: "An existing ServiceAccount instead of the one that the operator creates." }),
        imagePullSecrets: list(z.object({ name: secretName })).meta({ description: "Secrets with which the image is pulled." }),
        priorityClassName: z.exactOptional(z.string().max(bounds.nameCharsMax)).meta({ description: "PriorityClass of the pods." }),
        nodeSelector: z.exactOptional(labelMap).meta({ description: "Labels that a node must have." }),
        tolerations: list(anything).meta({ description: "Taints that the pods tolerate, as in a pod." }),
        affinity: z.exactOptional(anything).meta({ description: "Affinity of the pods, as in a pod." }),
        topologySpreadConstraints: list(anything).meta({ description: "Replaces the operator's own spread over nodes and zones, as in a pod." }),
        env: list(named).meta({ description: "Environment variables added to the worker, as in a container. Names with DURABLE_TIMER_ are reserved." }),
        volumes: list(named).meta({ description: "Volumes added to the pods, as in a pod." }),
        volumeMounts: list(named).meta({ description: "Mounts added to the worker, as in a container." }),
        securityContext: z.exactOptional(anything).meta({ description: "Merged over the pod's security context, as in a pod." }),
      }),
    )
    .meta({ description: "Parts of a pod's spec, in Kubernetes' own shapes." }),
});

const resourceList = mapOf(quantity);

const workers = z.object({
  replicas: z.int32().min(0).max(bounds.workersMax).default(2).meta({ description: "Worker processes; the target of kubectl scale and of an autoscaler." }),
  image: z.exactOptional(z.string().max(bounds.imageCharsMax)).meta({ description: "Image of the workers. Empty: the one that the operator was installed with." }),
  imagePullPolicy: z.enum(["Always", "IfNotPresent", "Never"]).default("IfNotPresent").meta({ description: "When the image is pulled." }),
  auth: z
    .exactOptional(z.object(authShape))
    .meta({ description: "The workers' identity: at most one way. Without it they use nats.auth, which has more rights than they need." }),
  maxAckPending: z
    .int32()
    .min(1)
    .max(bounds.ackPendingMax)
    .default(2_000)
    .meta({ description: "Messages of one kind that all workers together may hold unacknowledged." }),
  resources: z
    .object({
      requests: z.exactOptional(resourceList).meta({ description: "What a worker is guaranteed." }),
      limits: z.exactOptional(resourceList).meta({ description: "What a worker may use at most." }),
    })
    .default({ requests: { cpu: "250m", memory: "256Mi" }, limits: { memory: "512Mi" } })
    .meta({ description: "Compute resources of one worker. Given at all, it replaces the default as a whole." }),
  terminationGracePeriodSeconds: z.int32().min(bounds.terminationGraceSecondsMin).max(3_600).default(45).meta({ description: "Time that a stopping worker has to finish what it holds." }),
  minReadySeconds: z.int32().min(0).max(600).default(5).meta({ description: "How long a new worker must be ready before the next one is replaced." }),
  progressDeadlineSeconds: z.int32().min(bounds.progressDeadlineSecondsMin).max(86_400).default(600).meta({ description: `A rollout without progress for this long counts as stuck; more than minReadySeconds.` }),
  podTemplate: z.exactOptional(podTemplate).meta({ description: "Additions to the pods of the workers." }),
});

/** The spec of a DurableTimer with its defaults; relations between fields are in rules.ts. */
export const specSchema = z.object({
  nats: nats.meta({ description: "The NATS account that this resource owns for its timers." }),
  topology: topology.meta({ description: "Streams that hold the timers." }),
  limits: limits.prefault({}).meta({ description: "What a start may ask for." }),
  admission: admission.prefault({}).meta({ description: "When new timers are accepted." }),
  resume: resume.prefault({}).meta({ description: "How resumes are delivered to the flow's owner." }),
  feedback: feedback.prefault({}).meta({ description: "What becomes of resumes that nobody answers." }),
  sweep: sweep.prefault({}).meta({ description: "The regular comparison of state and schedules." }),
  retention: retention.prefault({}).meta({ description: "When what is left of ended timers is removed." }),
  workers: workers.prefault({}).meta({ description: "The processes that move timers." }),
  deletionPolicy: z.enum(["Retain", "Delete"]).default("Retain").meta({
    description: "What becomes of the streams when the resource is deleted. Retain: they stay, and a resource of the same name finds them again. Delete: they are deleted, once no timer waits or a person has acknowledged the incident that says so.",
  }),
  acknowledge: z
    .array(z.string().min(1).max(bounds.incidentIdCharsMax))
    .max(bounds.acknowledgeMax)
    .default([])
    .meta({ "x-kubernetes-list-type": "set", description: "Ids from status.incidents that a person has judged. Each allows what its incident proposes, once." }),
});

/** What a person writes: defaults may be left out, sizes are quantities. */
export type DurableTimerSpecInput = z.input<typeof specSchema>;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.DisconnectException;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.NetworkException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * A driver of Kafka for weir's driver exec, by the vendor's own Java client. README.md
 * describes the protocol. Arguments: the address of a broker, then settings of the client
 * as name=value (acks=all, linger.ms=0).
 *
 * <p>A subscription is a group; its offsets are committed for each frame that weir accepts.
 */
public class KafkaChild {
    static final int HELLO = 1, ASK = 2, ANSWER = 3, PUBLISH = 4, COMPLETE = 5, RUN = 6, READY = 7, DELIVER = 8;
    static final int SETTLE = 9, SETTLED = 10, FAULT = 11, LOST = 12, END = 13;
    static final List<String> WORDS = List.of("", "unreachable", "auth", "unsupported", "too-large", "timeout",
            "disconnected", "overloaded", "closed", "other");
    static final int MAX_PAYLOAD = 8 << 20, HEADROOM = 64 << 10; // of a message, and around it
    static final int HAS_KEY = 2, NOWHERE = 0xFFFF;

    static final List<String> CAN = List.of("consumers", "competing", "subscriptions", "partitions", "replicas", "keys",
            "retains", "refusing", "settle-confirmed", "settle-each", "settle-batch", "settle-auto");

    static Properties settings = new Properties();
    static Admin admin;
    static String run = "";
    static boolean existing;
    static final Set<String> topics = ConcurrentHashMap.newKeySet();
    static final Set<String> groups = ConcurrentHashMap.newKeySet();

    public static void main(String[] args) throws Exception {
        settings.put("bootstrap.servers", args.length > 0 ? args[0] : "127.0.0.1:9092");
        for (int i = 1; i < args.length; i++) {
            String[] s = args[i].split("=", 2);
            settings.put(s[0], s[1]);
        }
        admin = Admin.create(only("default.api.timeout.ms", "9000", "request.timeout.ms", "5000"));
        Peer control = new Peer(Map.of("protocol", List.of("1"), "name", List.of("KafkaChild.java"),
                "client", List.of("kafka-clients " + AppInfoParser.getVersion()), "order", List.of("partition"), "can", CAN));
        ExecutorService asked = Executors.newCachedThreadPool();
        while (true) {
            Frame f = control.read();
            if (f == null) {
                Runtime.getRuntime().halt(0); // weir is done with us, whatever other threads wait for
            }
            int number = f.body.getInt();
            Map<String, List<String>> fields = fields(f.body);
            asked.execute(() -> {
                Map<String, List<String>> got;
                try {
                    got = serve(fields);
                } catch (Throwable e) {
                    Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
                    got = Map.of("error", List.of(word(cause)), "text", List.of(String.valueOf(cause)));
                }
                ByteBuffer body = packed(got);
                try {
                    control.send(ANSWER, ByteBuffer.allocate(4).putInt(number).flip(), body);
                } catch (IOException gone) {
                    Runtime.getRuntime().halt(0);
                }
            });
        }
    }

    /** The client's settings, some of them replaced. */
    static Properties only(String... more) {
        Properties p = new Properties();
        p.putAll(settings);
        for (int i = 0; i < more.length; i += 2) {
            p.putIfAbsent(more[i], more[i + 1]);
        }
        return p;
    }

    static String topic(String destination) {
        return existing ? destination : "weir-" + run + "-" + destination;
    }

    static String group(String subscription) {
        return "weir-" + run + "-" + subscription;
    }

    static Map<String, List<String>> serve(Map<String, List<String>> f) throws Exception {
        switch (f.get("ask").get(0)) {
            case "open":
                run = f.get("run").get(0);
                existing = f.get("existing").get(0).equals("yes");
                admin.describeCluster().nodes().get();
                return Map.of();
            case "declare":
                declare(topic(f.get("destination").get(0)), Integer.parseInt(f.get("partitions").get(0)),
                        Short.parseShort(f.get("replicas").get(0)));
                return Map.of();
            case "delete":
                delete(topic(f.get("destination").get(0)));
                return Map.of();
            case "facts":
                return facts();
            case "backlog":
                return Map.of("count", List.of(Long.toString(backlog(group(f.get("subscription").get(0)), f.get("destination")))));
            case "producer":
                Producer p = new Producer(f);
                thread("producer", p::loop);
                return Map.of("max-payload", List.of(Integer.toString(MAX_PAYLOAD)));
            case "consumer":
                Consumer c = new Consumer(f);
                thread("consumer", c::loop);
                return Map.of();
            default:
                throw new UnsupportedOperationException("unknown request " + f.get("ask").get(0));
        }
    }

    static void thread(String name, Runnable loop) {
        Thread t = new Thread(loop, name);
        t.setDaemon(true);
        t.start();
    }

    static void declare(String topic, int partitions, short replicas) throws Exception {
        try {
            NewTopic made = new NewTopic(topic, partitions, replicas);
            made.configs(Map.of("max.message.bytes", Integer.toString(MAX_PAYLOAD + HEADROOM)));
            admin.createTopics(List.of(made)).all().get();
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof TopicExistsException)) {
                throw e;
            }
        }
        for (int i = 0; i < 500; i++) { // until each partition has a leader
            try {
                TopicDescription d = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
                if (d.partitions().size() == partitions && d.partitions().stream().allMatch(p -> p.leader() != null)) {
                    break;
                }
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) {
                    throw e;
                }
            }
            Thread.sleep(10);
        }
        topics.add(topic);
    }

    static void delete(String topic) throws Exception {
        topics.remove(topic);
        try {
            admin.deleteTopics(List.of(topic)).all().get();
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) {
                throw e;
            }
        }
        if (topics.isEmpty()) { // the groups go with the last topic
            for (String g : groups) {
                try {
                    admin.deleteConsumerGroups(List.of(g)).all().get();
                } catch (ExecutionException e) {
                    if (!(e.getCause() instanceof GroupIdNotFoundException)) {
                        System.err.println("deleting group " + g + ": " + e.getCause());
                    }
                }
            }
            groups.clear();
        }
    }

    /** What a confirmation means: with acks=all, min.insync.replicas of the topics decide. */
    static Map<String, List<String>> facts() throws Exception {
        Map<String, List<String>> f = new LinkedHashMap<>();
        f.put("name", List.of("kafka"));
        f.put("nodes", List.of(Integer.toString(admin.describeCluster().nodes().get().size())));
        var features = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
        f.put("version", List.of("metadata.version " + features.get("metadata.version").maxVersionLevel()));
        String acks = settings.getProperty("acks", "all");
        f.put("setting.acks", List.of(acks));
        f.put("setting.linger.ms", List.of(settings.getProperty("linger.ms", "the client's default")));
        int guarantee = 5, copies = 2, stable = 2; // the weakest of all topics
        List<ConfigResource> all = new ArrayList<>();
        topics.forEach(t -> all.add(new ConfigResource(ConfigResource.Type.TOPIC, t)));
        Map<ConfigResource, Config> configs = admin.describeConfigs(all).all().get();
        Map<String, TopicDescription> described = admin.describeTopics(new ArrayList<>(topics)).allTopicNames().get();
        for (var e : configs.entrySet()) {
            int isr = Integer.parseInt(e.getValue().get("min.insync.replicas").value());
            boolean synced = e.getValue().get("flush.messages").value().equals("1");
            int replicas = described.get(e.getKey().name()).partitions().stream().mapToInt(p -> p.replicas().size()).min().orElse(1);
            int have = acks.equals("all") || acks.equals("-1") ? Math.min(isr, replicas) : 1;
            boolean quorum = 2 * have > replicas;
            copies = Math.min(copies, have == replicas && have > 1 ? 2 : quorum && have > 1 ? 1 : 0);
            stable = Math.min(stable, synced ? 2 : 1);
            guarantee = Math.min(guarantee, quorum && synced ? 5 : quorum && have > 1 ? 4 : 3);
        }
        if (configs.isEmpty()) {
            guarantee = 3;
            copies = 0;
            stable = 1;
        }
        if (acks.equals("0")) {
            guarantee = 2;
            copies = 0;
            stable = 0;
        }
        f.put("guarantee", List.of(List.of("", "buffered", "written", "received", "replicated", "persisted").get(guarantee)));
        f.put("copies", List.of(List.of("1", "quorum", "all").get(copies)));
        f.put("stable", List.of(List.of("none", "os", "fsync").get(stable)));
        return f;
    }

    static long backlog(String group, List<String> destinations) throws Exception {
        Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
        List<String> names = destinations.stream().map(KafkaChild::topic).toList();
        for (TopicDescription d : admin.describeTopics(names).allTopicNames().get().values()) {
            d.partitions().forEach(p -> latest.put(new TopicPartition(d.name(), p.partition()), OffsetSpec.latest()));
        }
        var ends = admin.listOffsets(latest).all().get();
        var committed = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        long left = 0;
        for (var e : ends.entrySet()) {
            OffsetAndMetadata at = committed.get(e.getKey());
            left += e.getValue().offset() - (at == null ? 0 : at.offset());
        }
        return left;
    }

    /** One producer and its connection. The client confirms on its own thread; another writes. */
    static class Producer {
        final Peer peer;
        final List<String> to;
        final KafkaProducer<byte[], byte[]> client;
        final ByteArrayOutputStream fates = new ByteArrayOutputStream();
        boolean ended;

        Producer(Map<String, List<String>> f) throws IOException {
            to = f.get("destination").stream().map(KafkaChild::topic).toList();
            client = new KafkaProducer<>(only("acks", "all", "max.request.size", Integer.toString(MAX_PAYLOAD + HEADROOM)), new ByteArraySerializer(), new ByteArraySerializer());
            to.forEach(client::partitionsFor);
            peer = new Peer(Map.of("channel", f.get("channel")));
        }

        void loop() {
            Thread writer = new Thread(this::write, "fates");
            writer.setDaemon(true);
            writer.start();
            try {
                for (Frame f = peer.read(); f != null && f.kind == PUBLISH; f = peer.read()) {
                    long received = System.nanoTime();
                    for (int n = f.body.getInt(); n > 0; n--) {
                        int slot = f.body.getInt();
                        String topic = to.get(Short.toUnsignedInt(f.body.getShort()));
                        byte[] key = (f.body.get() & HAS_KEY) == 0 ? null : bytes(f.body, f.body.getInt());
                        byte[] payload = bytes(f.body, f.body.getInt());
                        try {
                            client.send(new ProducerRecord<>(topic, key, payload), (at, failed) -> fate(slot, received, failed));
                        } catch (RuntimeException e) {
                            fate(slot, received, e);
                        }
                    }
                }
                client.close(Duration.ofSeconds(5));
                synchronized (fates) {
                    ended = true;
                    fates.notify();
                }
                writer.join();
            } catch (IOException | InterruptedException gone) {
                client.close(Duration.ZERO);
            }
            peer.close();
        }

        void fate(int slot, long received, Exception failed) {
            long took = System.nanoTime() - received;
            synchronized (fates) {
                ByteBuffer b = ByteBuffer.allocate(12).putInt(slot).putLong(took);
                fates.writeBytes(b.array());
                fates.writeBytes(error(failed));
                fates.notify();
            }
        }

        void write() {
            try {
                while (true) {
                    byte[] body;
                    synchronized (fates) {
                        while (fates.size() == 0 && !ended) {
                            fates.wait();
                        }
                        if (fates.size() == 0) {
                            return;
                        }
                        body = fates.toByteArray();
                        fates.reset();
                    }
                    peer.send(COMPLETE, ByteBuffer.wrap(body));
                }
            } catch (IOException | InterruptedException gone) {
                client.close(Duration.ZERO);
            }
        }
    }

    /** One consumer and its connection, on one thread but for what comes from weir. */
    static class Consumer implements ConsumerRebalanceListener {
        final Peer peer;
        final List<String> from;
        final boolean answered, each;
        final KafkaConsumer<byte[], byte[]> client;
        final Map<TopicPartition, OffsetAndMetadata> accepted = new HashMap<>();
        final Map<Integer, Map<TopicPartition, OffsetAndMetadata>> unsettled = new LinkedHashMap<>();
        boolean assigned, ending;
        double closed;

        Consumer(Map<String, List<String>> f) throws IOException {
            from = f.get("destination").stream().map(KafkaChild::topic).toList();
            String group = group(f.get("subscription").get(0)), prefetch = f.get("prefetch").get(0);
            groups.add(group);
            answered = !f.get("settle").get(0).equals("auto");
            each = f.get("settle").get(0).equals("each");
            client = new KafkaConsumer<>(only("group.id", group, "auto.offset.reset", existing ? "latest" : "earliest",
                    "enable.auto.commit", Boolean.toString(!answered), "auto.commit.interval.ms", "100",
                    "max.poll.records", prefetch.equals("0") ? "500" : prefetch), new ByteArrayDeserializer(), new ByteArrayDeserializer());
            client.subscribe(from, this);
            peer = new Peer(Map.of("channel", f.get("channel")));
        }

        void loop() {
            try {
                Frame first = peer.read();
                if (first != null && first.kind == RUN) {
                    receive();
                }
            } catch (IOException gone) {
                // weir has closed the connection
            } catch (RuntimeException e) {
                tell(LOST, e);
            }
            try {
                client.close(Duration.ofSeconds(3));
                for (int n : unsettled.keySet()) {
                    peer.send(SETTLED, ByteBuffer.allocate(5).putInt(n).put((byte) 0).flip());
                }
            } catch (IOException | RuntimeException e) {
                System.err.println("closing a consumer: " + e);
            }
            peer.close();
        }

        void receive() throws IOException {
            boolean ready = false;
            for (int n = 1; !ending; n++) {
                ConsumerRecords<byte[], byte[]> records = client.poll(Duration.ofMillis(ready ? 50 : 10));
                if (assigned && !ready) {
                    client.assignment().forEach(client::position);
                    peer.send(READY);
                    ready = true;
                }
                lookAtConnections();
                if (!records.isEmpty()) {
                    deliver(n, records);
                } else if (peer.waiting()) {
                    ending = true; // END: nothing else is outstanding
                }
            }
            if (answered) {
                client.commitSync(accepted, Duration.ofSeconds(3));
            }
        }

        void deliver(int n, ConsumerRecords<byte[], byte[]> records) throws IOException {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            DataOutputStream d = new DataOutputStream(out);
            d.writeInt(n);
            Map<TopicPartition, OffsetAndMetadata> first = new HashMap<>(), next = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> r : records) {
                TopicPartition at = new TopicPartition(r.topic(), r.partition());
                first.putIfAbsent(at, new OffsetAndMetadata(r.offset()));
                next.put(at, new OffsetAndMetadata(r.offset() + 1));
                int source = from.indexOf(r.topic());
                d.writeInt(r.partition());
                d.writeShort(source < 0 ? NOWHERE : source);
                d.writeByte(r.key() == null ? 0 : HAS_KEY);
                if (r.key() != null) {
                    d.writeInt(r.key().length);
                    d.write(r.key());
                }
                d.writeInt(r.value().length);
                d.write(r.value());
            }
            peer.send(DELIVER, ByteBuffer.wrap(out.toByteArray()));
            while (answered) {
                Frame f = peer.read();
                if (f == null) {
                    throw new EOFException();
                }
                if (f.kind == END) {
                    ending = true; // the answer to the last frame still comes
                    continue;
                }
                f.body.getInt();
                if (f.body.get() == 0) {
                    first.forEach(client::seek);
                    return;
                }
                accepted.putAll(next);
                unsettled.put(n, next);
                if (each) { // a commit for each message; the last one has the frame's offsets
                    for (ConsumerRecord<byte[], byte[]> r : records) {
                        OffsetAndMetadata after = new OffsetAndMetadata(r.offset() + 1);
                        client.commitAsync(Map.of(new TopicPartition(r.topic(), r.partition()), after), null);
                    }
                }
                client.commitAsync(next, (offsets, failed) -> settled(n, failed));
                return;
            }
        }

        void settled(int n, Exception failed) {
            try {
                if (unsettled.remove(n) != null) {
                    peer.send(SETTLED, ByteBuffer.allocate(4).putInt(n).flip(), ByteBuffer.wrap(error(failed)));
                }
            } catch (IOException gone) {
                ending = true;
            }
        }

        /** The client connects again without a word: its metrics tell. */
        void lookAtConnections() {
            for (Metric m : client.metrics().values()) {
                if (m.metricName().name().equals("connection-close-total") && m.metricName().tags().size() == 1) {
                    double now = (Double) m.metricValue();
                    if (now > closed) {
                        closed = now;
                        tell(FAULT, new DisconnectException("the client has closed " + (long) now + " connections"));
                    }
                }
            }
        }

        void tell(int kind, Exception e) {
            try {
                peer.send(kind, packed(Map.of("error", List.of(word(e)), "text", List.of(String.valueOf(e.getMessage())))));
            } catch (IOException gone) {
                ending = true;
            }
        }

        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            assigned = true;
        }

        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            Map<TopicPartition, OffsetAndMetadata> mine = new HashMap<>(accepted);
            mine.keySet().retainAll(new HashSet<>(partitions));
            if (answered && !mine.isEmpty()) {
                client.commitSync(mine, Duration.ofSeconds(3));
            }
            accepted.keySet().removeAll(partitions);
        }
    }

    static String word(Throwable e) {
        return e instanceof RecordTooLargeException ? "too-large"
                : e instanceof AuthenticationException || e instanceof AuthorizationException ? "auth"
                : e instanceof TimeoutException ? "timeout"
                : e instanceof NetworkException || e instanceof DisconnectException ? "disconnected"
                : e instanceof UnsupportedOperationException || e instanceof org.apache.kafka.common.errors.InvalidReplicationFactorException
                        ? "unsupported"
                : "other";
    }

    /** An error of a complete or settled frame. */
    static byte[] error(Exception e) {
        if (e == null) {
            return new byte[] {0};
        }
        byte[] text = String.valueOf(e.getMessage()).getBytes(StandardCharsets.UTF_8);
        int n = Math.min(text.length, 1000);
        return ByteBuffer.allocate(3 + n).put((byte) WORDS.indexOf(word(e))).putShort((short) n).put(text, 0, n).array();
    }

    static byte[] bytes(ByteBuffer b, int n) {
        byte[] out = new byte[n];
        b.get(out);
        return out;
    }

    static Map<String, List<String>> fields(ByteBuffer b) {
        Map<String, List<String>> f = new HashMap<>();
        while (b.hasRemaining()) {
            String name = new String(bytes(b, Short.toUnsignedInt(b.getShort())), StandardCharsets.UTF_8);
            f.computeIfAbsent(name, n -> new ArrayList<>()).add(new String(bytes(b, b.getInt()), StandardCharsets.UTF_8));
        }
        return f;
    }

    static ByteBuffer packed(Map<String, List<String>> f) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        f.forEach((name, values) -> values.forEach(v -> {
            byte[] n = name.getBytes(StandardCharsets.UTF_8), text = v.getBytes(StandardCharsets.UTF_8);
            out.writeBytes(ByteBuffer.allocate(2).putShort((short) n.length).array());
            out.writeBytes(n);
            out.writeBytes(ByteBuffer.allocate(4).putInt(text.length).array());
            out.writeBytes(text);
        }));
        return ByteBuffer.wrap(out.toByteArray());
    }

    record Frame(int kind, ByteBuffer body) {}

    /** One connection to weir. */
    static class Peer {
        final SocketChannel socket;
        final java.util.concurrent.BlockingQueue<Optional<Frame>> frames = new java.util.concurrent.LinkedBlockingQueue<>(16);

        Peer(Map<String, List<String>> hello) throws IOException {
            socket = SocketChannel.open(UnixDomainSocketAddress.of(System.getenv("WEIR_SOCKET")));
            send(HELLO, packed(hello));
            thread("reader", this::fill);
        }

        /** Reads ahead by a few frames, so that a consumer can see whether one waits. */
        void fill() {
            try (InputStream raw = Channels.newInputStream(socket); DataInputStream in = new DataInputStream(new java.io.BufferedInputStream(raw, 1 << 18))) {
                while (true) {
                    int n = in.readInt() - 1, kind = in.readByte();
                    byte[] body = new byte[n];
                    in.readFully(body);
                    frames.put(Optional.of(new Frame(kind, ByteBuffer.wrap(body))));
                }
            } catch (IOException | InterruptedException gone) {
                try {
                    frames.put(Optional.empty());
                } catch (InterruptedException ignored) {
                    Thread.currentThread().interrupt();
                }
            }
        }

        /** The next frame; null when weir has closed the connection. */
        Frame read() throws IOException {
            try {
                return frames.take().orElse(null);
            } catch (InterruptedException e) {
                throw new IOException(e);
            }
        }

        boolean waiting() {
            return !frames.isEmpty();
        }

        synchronized void send(int kind, ByteBuffer... parts) throws IOException {
            int n = 1;
            for (ByteBuffer p : parts) {
                n += p.remaining();
            }
            ByteBuffer all = ByteBuffer.allocate(4 + n).putInt(n).put((byte) kind);
            for (ByteBuffer p : parts) {
                all.put(p);
            }
            all.flip();
            while (all.hasRemaining()) {
                socket.write(all);
            }
        }

        void close() {
            try {
                socket.close();
            } catch (IOException ignored) {
                // it is closed
            }
        }
    }
}

package series

// AddressVariable returns the first variable that is set among those in which hosting services give the
// address of a driver's system; "": none is. weir reads it only on request, so that no load reaches a
// server by accident.
func AddressVariable(driver string, env func(name string) (string, bool)) string {
	var names []string
	switch driver {
	case "nats", "jetstream", "nats-streaming":
		names = []string{"NATS_URL"}
	case "rabbitmq":
		names = []string{"AMQP_URL", "CLOUDAMQP_URL", "RABBITMQ_URL"}
	case "redis-pubsub", "redis-streams":
		names = []string{"REDIS_URL"}
	case "postgres":
		names = []string{"DATABASE_URL", "POSTGRES_URL"}
	case "mqtt":
		names = []string{"MQTT_URL"}
	case "kafka", "kmq":
		names = []string{"BOOTSTRAP_SERVERS", "KAFKA_BROKERS"}
	}
	for _, name := range names {
		if v, ok := env(name); ok && v != "" {
			return name
		}
	}
	return ""
}

// Package standard lists the drivers that every weir has, a line each. They compile fast: the
// command of a newcomer, go run ./cmd/weir, compiles them all. Package drivers/all has the others.
package standard

import (
	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/activemq"
	"github.com/weirmq/weir/drivers/amqp1"
	"github.com/weirmq/weir/drivers/artemis"
	"github.com/weirmq/weir/drivers/beanstalkd"
	channel "github.com/weirmq/weir/drivers/chan"
	"github.com/weirmq/weir/drivers/exec"
	"github.com/weirmq/weir/drivers/iris"
	"github.com/weirmq/weir/drivers/jetstream"
	"github.com/weirmq/weir/drivers/kafka"
	"github.com/weirmq/weir/drivers/kestrel"
	"github.com/weirmq/weir/drivers/kmq"
	"github.com/weirmq/weir/drivers/mqtt"
	"github.com/weirmq/weir/drivers/nanomsg"
	"github.com/weirmq/weir/drivers/nats"
	"github.com/weirmq/weir/drivers/natsstreaming"
	"github.com/weirmq/weir/drivers/noop"
	"github.com/weirmq/weir/drivers/nsq"
	"github.com/weirmq/weir/drivers/postgres"
	"github.com/weirmq/weir/drivers/rabbitmq"
	"github.com/weirmq/weir/drivers/rabbitmqstream"
	"github.com/weirmq/weir/drivers/redispubsub"
	"github.com/weirmq/weir/drivers/redisstreams"
	"github.com/weirmq/weir/drivers/ring"
	"github.com/weirmq/weir/drivers/zeromq"
)

// Definitions returns the drivers, sorted by name.
func Definitions() []driver.Definition {
	return []driver.Definition{
		activemq.Definition(),
		amqp1.Definition(),
		artemis.Definition(),
		beanstalkd.Definition(),
		channel.Definition(),
		exec.Definition(),
		iris.Definition(),
		jetstream.Definition(),
		kafka.Definition(),
		kestrel.Definition(),
		kmq.Definition(),
		mqtt.Definition(),
		nanomsg.Definition(),
		nats.Definition(),
		natsstreaming.Definition(),
		noop.Definition(),
		nsq.Definition(),
		postgres.Definition(),
		rabbitmq.Definition(),
		rabbitmqstream.Definition(),
		redispubsub.Definition(),
		redisstreams.Definition(),
		ring.Definition(),
		zeromq.Definition(),
	}
}

// Absent returns the drivers that only package drivers/all has.
func Absent() []driver.Absent {
	return []driver.Absent{
		{Name: "eventstore", Title: "EventStoreDB", Recipes: []string{"eventstore"}},
		{Name: "liftbridge", Title: "Liftbridge", Recipes: []string{"liftbridge"}},
		{Name: "mongodb", Title: "MongoDB", Recipes: []string{"ferretdb", "mongodb"}},
		{Name: "pulsar", Title: "Apache Pulsar", Recipes: []string{"pulsar", "pulsar-cluster"}},
		{Name: "rocketmq", Title: "Apache RocketMQ", Recipes: []string{"rocketmq"}},
		{Name: "sqs", Title: "Amazon SQS", Recipes: []string{"elasticmq"}},
	}
}

package schedule_test

import (
	"fmt"
	"time"

	"github.com/weirmq/weir/schedule"
)

func ExampleSchedule_Due() {
	rate, err := schedule.ParseRate("3/s")
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := schedule.New(schedule.Spec{
		Phases:    []schedule.Phase{{From: rate, To: rate, For: 2 * time.Second}},
		Producers: 2, Destinations: 1, BatchMin: 1, BatchMax: 1,
		Sizes: []schedule.WeightedSize{{Bytes: 1024, Weight: 1}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, due := range s.Due(schedule.Part{Index: 1, Count: 2}) {
		fmt.Println(i, time.Duration(due), s.Producer(i))
	}
	// Output:
	// 1 333.333333ms 1
	// 3 1s 1
	// 5 1.666666666s 1
}

package engine

// none is the stage of a message outside all stages, or if stages are not recorded separately.
const none = -1

// stagesOfParts sums what all workers recorded per stage. It returns nil if the plan has no stages,
// or if a worker did not report them: its process vanished, and its messages would be missing.
func (j *assembly) stagesOfParts() []StageRecord {
	if len(j.stages) == 0 {
		return nil
	}
	all := make([]StageRecord, len(j.stages))
	for i, begin := range j.stages {
		all[i].From, all[i].To = begin, j.to
		if i > 0 {
			all[i-1].To = begin
		}
	}
	for _, p := range j.parts {
		if p.Missing || len(p.Stages) != len(all) {
			return nil
		}
		for i := range all {
			all[i].Merge(&p.Stages[i])
		}
	}
	return all
}

// stageAt returns the stage that an instant lies in.
func (j *assembly) stageAt(due int64) int {
	for i := len(j.staged) - 1; i >= 0; i-- {
		if due >= j.staged[i].From {
			return i
		}
	}
	return none
}

// reached returns the stages that the run reached, the last one cut at the end of the run.
func (j *assembly) reached() []StageRecord {
	for i := range j.staged {
		if g := &j.staged[i]; g.From >= j.raw.To {
			return j.staged[:i]
		} else if g.To > j.raw.To {
			g.To = j.raw.To
		}
	}
	return j.staged
}

import java.io.File;
import java.io.PrintStream;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramIterationValue;
import org.HdrHistogram.HistogramLogReader;
import org.HdrHistogram.HistogramLogWriter;

/**
 * Prints what HdrHistogram's own reader finds in a log: for each line its tag,
 * start, end and total count, its non-empty buckets as "lowest:count", and the
 * percentile table. With a second argument it writes the lines it read to
 * that file, so that the other side can read what Java writes.
 */
public class ReadLog {
    public static void main(String[] args) throws Exception {
        HistogramLogReader reader = new HistogramLogReader(new File(args[0]));
        HistogramLogWriter writer = args.length > 1 ? new HistogramLogWriter(new File(args[1])) : null;
        EncodableHistogram e;
        while ((e = reader.nextIntervalHistogram()) != null) {
            Histogram h = (Histogram) e;
            StringBuilder b = new StringBuilder();
            b.append("line ").append(h.getTag()).append(' ').append(h.getStartTimeStamp()).append(' ')
                .append(h.getEndTimeStamp()).append(' ').append(h.getTotalCount());
            for (HistogramIterationValue v : h.recordedValues()) {
                b.append(' ').append(h.lowestEquivalentValue(v.getValueIteratedTo())).append(':')
                    .append(v.getCountAddedInThisIterationStep());
            }
            System.out.println(b);
            h.outputPercentileDistribution(System.out, 5, 1.0);
            System.out.println("end");
            if (writer != null) {
                writer.outputIntervalHistogram(h.getStartTimeStamp() / 1000.0, h.getEndTimeStamp() / 1000.0, h, 1e6);
            }
        }
        if (writer != null) {
            writer.close();
        }
    }
}
